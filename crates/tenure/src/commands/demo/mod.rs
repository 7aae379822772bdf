//! `tenure demo`: two runners, a killed agent, a killed runner, a late write and an exclusive lock, on real processes and a
//! real store in a temporary folder. It checks what it saw, so it is a test of the machine it runs on.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

mod checks;
mod play;
mod pretend;
mod stage;

use checks::Check;
use stage::Stage;

/// See it work: two runners with pretend agents in a temporary folder, and what happens when they are killed
///
/// Everything is real but the agents: processes, leases, fences, the exclusive lock. It takes some ten seconds, checks what
/// it saw, and exits 1 if anything was not as promised.
///
/// Example: tenure demo
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave the folder behind
    #[arg(long)]
    keep: bool,
    /// Be one of the pretend agents
    #[arg(long, hide = true)]
    pretend: bool,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    if args.pretend {
        pretend::work();
        return Ok(None);
    }
    if app.global.dry_run {
        return Err(Report::usage(
            "the demo writes, if only to a temporary folder; it goes without --dry-run",
        )
        .hint("see it", "tenure demo"));
    }
    let mut stage = Stage::build(app, args.keep)?;
    let seen = play::all(&mut stage)?;
    let mut checks = checks::of_the_feed(&seen.feed);
    checks.extend(seen.checks);
    stage.close();

    let data = json!({
        "checks": checks.iter().map(Check::to_json).collect::<Vec<Value>>(),
        "handOffMs": seen.hand_off_ms,
        "takeoverMs": seen.takeover_ms,
        "folder": args.keep.then(|| stage.scratch.root()),
    });
    let mut text = Text::new();
    text.blank();
    for check in &checks {
        let (style, mark) = if check.holds { (Style::Good, "ok  ") } else { (Style::Bad, "FAIL") };
        text.styled(style, mark).and(Style::Plain, format!("  {}", check.what));
        if let Some(why) = &check.why {
            text.styled(Style::Dim, format!("      {why}"));
        }
    }
    let failed = checks.iter().any(|check| !check.holds);
    let answer = Answer::new(data, text).exit(u8::from(failed));
    Ok(Some(if args.keep {
        answer.hint("look around", format!("tenure -C {} status", stage.scratch.root().display()))
    } else {
        answer
    }))
}
