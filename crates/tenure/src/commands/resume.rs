//! `tenure resume`.

use std::process::Command;

use tenure_core::reference::{self, Work};

use super::jobs::take_up::{self, ResumeOptions};
use super::runners;
use crate::answer::Answer;
use crate::app::App;
use crate::printer::CommandName;
use crate::report::Outcome;
use crate::text::{Style, Text};

/// Go on with an interrupted session or job
///
/// Finished work is skipped, interrupted work is done again. One process at a time: another one is told who has it
/// (exit 6). Finished work is exit 0.
///
/// Example: tenure resume thumbnails --retry-failed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session or job: its id, the beginning of that, or the job's name
    id: String,
    /// Take it also from a holder on another machine, or past a lock file that cannot be read
    #[arg(long)]
    force: bool,
    /// A job: try the dead letters again
    #[arg(long)]
    retry_failed: bool,
    /// Go on although the definition has changed
    #[arg(long)]
    accept_changes: bool,
    /// Go on as a process of its own
    #[arg(long)]
    detach: bool,
    /// The process behind --detach (for tenure itself)
    #[arg(long, hide = true)]
    detached: bool,
}

const NAME: CommandName<'static> = CommandName { command: "resume", subcommand: None };

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    if args.detached {
        tenure_runner::detach();
    }
    let open = app.open()?;
    let work = open.read(|view| reference::work(view, &args.id))?;
    if args.detach && !app.global.dry_run {
        return detach(app, &args, &work).map(Some);
    }
    let options = ResumeOptions {
        force: args.force,
        retry_failed: args.retry_failed,
        accept_changes: args.accept_changes,
        detached: args.detached.then_some(NAME),
    };
    match work {
        Work::Job(job) => take_up::resume(app, &open, &job, options),
        Work::Session(session) => runners::resume(app, &open, &session, options),
    }
}

/// Starts ourselves as a process of its own, and waits only until it has the work or says why not.
fn detach(app: &mut App<'_>, args: &Args, work: &Work) -> Outcome<Answer> {
    let mut command = runners::own_command(app, &app.start()?)?;
    command.args(["resume", work.id(), "--detached"]);
    flags(&mut command, args);
    let data = runners::first_answer(&mut command)?;
    let short: String = work.id().chars().take(8).collect();
    let what = match work {
        Work::Job(_) => "job",
        Work::Session(_) => "session",
    };
    let mut text = Text::new();
    text.styled(Style::Good, "Resumed").and(Style::Plain, format!(" {what} {short}"));
    Ok(Answer::new(data, text).hint("see how it goes", format!("tenure {what}s show {short}")))
}

fn flags(command: &mut Command, args: &Args) {
    for (given, flag) in [
        (args.force, "--force"),
        (args.retry_failed, "--retry-failed"),
        (args.accept_changes, "--accept-changes"),
    ] {
        if given {
            command.arg(flag);
        }
    }
}
