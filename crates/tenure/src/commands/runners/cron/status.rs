//! `tenure runners cron status`.

use serde_json::{Value, json};
use tenure_core::duration::format_rounded;
use tenure_core::hints;

use super::timers::{self, With};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Show which timers are installed and when each last fired
///
/// Example: tenure runners cron status
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    with: With,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let found = timers::timer_states(app, &args.with.kinds())?;
    let now = app.env.clock.now();
    let mut text = Text::new();
    let mut rows: Vec<Value> = Vec::new();
    for timer in &found {
        rows.push(json!({
            "kind": timer.kind.as_str(),
            "installed": timer.entry.is_some(),
            "entry": timer.entry.as_ref().map(|entry| &entry.shown),
            "binary": timer.entry.as_ref().and_then(|entry| entry.binary.as_ref()),
            "lastFiredAt": timer.fired_at,
            "firing": timer.entry.is_some() && !timer.overdue,
            "trouble": timer.trouble,
        }));
        let kind = timer.kind.as_str();
        if let Some(trouble) = &timer.trouble {
            text.styled(Style::Warn, kind).and(Style::Plain, format!(": {trouble}"));
        }
        let Some(entry) = &timer.entry else { continue };
        let when = timer.fired_at.map_or_else(
            || "it has never fired".to_owned(),
            |at| {
                format!(
                    "it last fired {} ago, at {}",
                    format_rounded(now.since(at)),
                    app.local_time().seconds(at)
                )
            },
        );
        let style = if timer.overdue { Style::Warn } else { Style::Good };
        text.styled(style, format!("Installed with {kind}")).and(Style::Plain, format!("; {when}"));
        text.block(2, &entry.shown);
        if let Some(binary) = timer.missing_binary() {
            text.styled(Style::Bad, format!("  {} no longer exists", binary.display()));
        }
    }
    let none = found.iter().all(|timer| timer.entry.is_none());
    if none {
        text.line("No timer is installed, so runners are not started automatically.");
    }
    let answer = Answer::new(json!({"timers": rows, "total": rows.len()}), text);
    Ok(if none || found.iter().any(|timer| timer.missing_binary().is_some()) {
        answer.hint(hints::install_timer())
    } else {
        answer
    })
}
