//! `tenure exclusive status`.

use serde_json::json;
use tenure_lock::{ExclusiveStatus, Liveness};

use super::{describe, lock_status, object, root};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::Text;

/// Show the holder of the exclusive lock
///
/// Example: tenure exclusive status
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<Answer> {
    let mut text = Text::new();
    let (state, lock, why) = match lock_status(&root(app)?)? {
        ExclusiveStatus::Free => {
            text.line("The project is not locked.");
            ("free", None, None)
        }
        ExclusiveStatus::Held { lock, liveness } => {
            text.line(format!("Locked by {}", describe(&lock)));
            if liveness == Liveness::Unknown {
                text.line("  Its process is on another machine, so it is unknown whether it is alive.");
            }
            ("held", Some(object(&lock, liveness)), None)
        }
        ExclusiveStatus::Stale { lock } => {
            text.line(format!("Not locked; a dead process left its lock: {}", describe(&lock)));
            text.line("  The next runner or `exclusive acquire` removes it.");
            ("stale", Some(object(&lock, Liveness::Dead)), None)
        }
        ExclusiveStatus::Malformed(malformed) => {
            text.line(format!("The lock file is malformed: {}", malformed.why));
            text.line("  The project counts as locked until the file is repaired or removed.");
            ("malformed", None, Some(malformed.why))
        }
        _ => ("unknown", None, None),
    };
    Ok(Answer::new(json!({"state": state, "exclusive": lock, "malformed": why}), text))
}
