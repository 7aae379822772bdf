//! `tenure runners cron uninstall`.

use serde_json::json;
use tenure_runner::timer;

use super::timers::{self, With};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::Text;

/// Remove the timer of every kind
///
/// Example: tenure runners cron uninstall
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    with: With,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let machine = timers::machine(app);
    let mut removed = Vec::new();
    for kind in args.with.kinds() {
        let had = if app.global.dry_run {
            timer::find(kind, &machine).map(|entry| entry.is_some())
        } else {
            timer::uninstall(kind, &machine)
        };
        if had.map_err(timers::failed)? {
            removed.push(kind.as_str());
        }
    }
    let mut text = Text::new();
    if removed.is_empty() {
        text.line("No timer was installed.");
    } else {
        text.line(format!("{} the {} timer", app.past("Removed", "Would remove"), removed.join(", ")));
    }
    Ok(Answer::new(json!({"removed": removed, "total": removed.len()}), text))
}
