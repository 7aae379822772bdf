//! `tenure exclusive release`.

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_lock::{ExclusiveError, ExclusiveLock, ExclusiveStatus, Liveness, Release};
use tenure_runner::exclusion;

use super::acquire::parent;
use super::{describe, failed, lock_status, object, root};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Unlock the project, or remove the lock of a dead holder
///
/// Example: tenure exclusive release
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The process that holds it (default: the parent of this one)
    #[arg(long, value_name = "P")]
    pid: Option<u32>,
    /// Also remove the lock of a live holder, or a malformed lock file
    #[arg(long)]
    force: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let root = root(app)?;
    let pid = match args.pid {
        Some(pid) => pid,
        None => parent()?,
    };
    let mut text = Text::new();
    if app.global.dry_run {
        let (word, lock) = match lock_status(&root)? {
            ExclusiveStatus::Free => return Err(nothing()),
            ExclusiveStatus::Stale { lock } | ExclusiveStatus::Held { lock, .. } => {
                ("Would release", Some(lock))
            }
            _ => ("Would remove a malformed lock file", None),
        };
        text.line(word);
        return Ok(Answer::new(json!({"exclusive": lock.map(|l| object(&l, l.liveness()))}), text));
    }
    match exclusion::release(&root, |folder| ExclusiveLock::release_for(folder, pid)) {
        Ok(Release::Removed) => {
            text.line("Released the project");
            Ok(Answer::new(json!({"exclusive": null, "forced": false}), text))
        }
        Ok(Release::NotThere) => Err(nothing()),
        Ok(Release::NotOurs(lock)) if args.force => {
            match exclusion::release(&root, |folder| lock.release(folder)).map_err(failed)? {
                Release::NotOurs(_) => Err(Report::new(
                    ErrorCode::General,
                    "the lock was taken over by another holder meanwhile",
                )
                .hint(hints::show_exclusive())),
                _ => {
                    text.line(format!("Took the project from {}", describe(&lock)));
                    Ok(Answer::new(json!({"exclusive": null, "forced": true}), text))
                }
            }
        }
        Ok(Release::NotOurs(lock)) => {
            let mut report = Report::new(
                ErrorCode::PermissionDenied,
                format!("the project is locked by {}", describe(&lock)),
            );
            let liveness = lock.liveness();
            *report.details = json!({"lockedBy": lock.holder, "holder": object(&lock, liveness)});
            if liveness == Liveness::Unknown {
                report
                    .context
                    .push("Its process is on another machine, so it is unknown whether it is alive.".into());
            }
            Err(report)
        }
        Err(ExclusiveError::Malformed { path, .. }) if args.force => {
            std::fs::remove_file(&path)
                .map_err(|e| Report::new(ErrorCode::PermissionDenied, format!("{}: {e}", path.display())))?;
            text.line("Removed a malformed lock file");
            Ok(Answer::new(json!({"exclusive": null, "forced": true}), text))
        }
        Err(error) => Err(failed(error)),
        Ok(_) => Err(Report::new(ErrorCode::General, "the lock could not be released")),
    }
}

fn nothing() -> Report {
    Report::new(ErrorCode::LockNotFound, "the project is not locked")
}
