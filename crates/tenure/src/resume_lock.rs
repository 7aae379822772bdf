//! The resume lock of a session or job, `~/.tenure/resume_locks/ID.lock`: acquired before its lease and released after it.
//!
//! The lease in the store is authoritative. The file makes the same fact visible to other tools on this machine, so a
//! home that cannot be written is only a warning.

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_lock::{ResumeLock, ResumeLockError, ResumeLockManager};

use crate::app::App;
use crate::report::{CommandResult, Report};

/// `id` is the full id, not an abbreviation or a name, so that each session or job has exactly one file.
pub(crate) fn acquire(app: &mut App<'_>, id: &str, force: bool) -> CommandResult<Option<ResumeLock>> {
    let Some(home) = app.env.home() else { return Ok(None) };
    let taken = ResumeLockManager::new(home)
        .and_then(|manager| if force { manager.acquire_forced(id) } else { manager.acquire(id) });
    match taken {
        Ok(lock) => Ok(Some(lock)),
        Err(error @ ResumeLockError::Io { .. }) => {
            app.printer.warn(&format!("cannot write the resume lock file; continuing without it: {error}"));
            Ok(None)
        }
        Err(error) => Err(refusal(&error)),
    }
}

fn refusal(error: &ResumeLockError) -> Report {
    match error {
        ResumeLockError::InvalidId { .. } => Report::usage(error.to_string()),
        ResumeLockError::Held(held) => {
            let mut report = Report::new(ErrorCode::ResumeLocked, error.to_string());
            let holder = held.holder.as_ref();
            *report.details = json!({
                "id": held.id,
                "holder": holder.map(|who| json!({"pid": who.process_id, "host": who.hostname})),
                "acquiredAt": holder.map(|who| who.acquired_at.to_string()),
                "path": held.path.to_string_lossy(),
            });
            report
        }
        ResumeLockError::Unreadable { path, .. } => {
            let mut report = Report::new(ErrorCode::ResumeLocked, error.to_string());
            *report.details = json!({"path": path.to_string_lossy()});
            report.note("Another tool may have written that file. Check it before you remove it.")
        }
        _ => Report::new(ErrorCode::ResumeLocked, error.to_string()),
    }
}
