//! The logs of a task's attempts.

use std::path::{Path, PathBuf};

use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::lease::{Attempt, Resource, ResourceKind};
use tenure_lock::ProcessIdentity;

use crate::app::Open;
use crate::report::{CommandResult, Report};

/// The attempt with this number, counted from 1 for the oldest, and its log. Without a number it is the newest one that has
/// a log. Refused if the log is on another machine.
pub(crate) fn find(
    open: &Open<'_>,
    task: &TaskName,
    number: Option<usize>,
) -> CommandResult<(Attempt, PathBuf)> {
    let key = &task.key;
    let attempts = open.read(|view| view.attempts(&Resource::new(ResourceKind::Task, &task.id)))?;
    let chosen = match number {
        None => attempts.iter().find(|attempt| attempt.log_path.is_some()),
        Some(number) => {
            let missing = || {
                let count = match attempts.len() {
                    0 => "no attempts".to_owned(),
                    1 => "1 attempt".to_owned(),
                    many => format!("{many} attempts"),
                };
                Report::new(
                    ErrorCode::TaskNotFound,
                    format!("{key} has {count}; there is no attempt {number}"),
                )
            };
            let newest_first = attempts.len().checked_sub(number).ok_or_else(missing)?;
            Some(attempts.get(newest_first).ok_or_else(missing)?)
        }
    };
    let found = chosen.and_then(|attempt| Some((attempt.clone(), PathBuf::from(attempt.log_path.as_ref()?))));
    let Some((attempt, path)) = found else {
        let none = match number {
            Some(number) => format!("attempt {number} at {key} has left no log"),
            None => format!("no attempt at {key} has left a log"),
        };
        return Err(Report::new(ErrorCode::TaskNotFound, none));
    };
    if !is_here(&attempt) {
        let there = format!("the log of {key} is on {}: {}", attempt.owner.hostname, path.display());
        return Err(Report::new(ErrorCode::General, there));
    }
    check_folder(open, task, &path)?;
    Ok((attempt, path))
}

/// The log of an attempt on this machine.
#[cfg(any(feature = "board", feature = "web"))]
pub(crate) fn local(open: &Open<'_>, attempt: &Attempt) -> Option<PathBuf> {
    let path = PathBuf::from(attempt.log_path.as_ref()?);
    (is_here(attempt) && is_among_logs(open, &path)).then_some(path)
}

fn is_here(attempt: &Attempt) -> bool {
    attempt.owner.process.host_id == ProcessIdentity::current().host_id
}

/// The path was read from the store, which may have come with a repository.
fn is_among_logs(open: &Open<'_>, path: &Path) -> bool {
    path.parent() == Some(&open.paths.logs())
}

fn check_folder(open: &Open<'_>, task: &TaskName, path: &Path) -> CommandResult<()> {
    if is_among_logs(open, path) {
        return Ok(());
    }
    let outside = format!("the log of {} is not among the logs of this project", task.key);
    Err(Report::new(ErrorCode::PermissionDenied, outside))
}

/// A log that cannot be opened.
pub(crate) fn cannot_open(error: &std::io::Error, task: &TaskName, path: &Path) -> Report {
    if error.kind() == std::io::ErrorKind::NotFound {
        let gone = format!("the log of {} was removed: {}", task.key, path.display());
        return Report::new(ErrorCode::TaskNotFound, gone).hint(hints::show_log_retention());
    }
    Report::io(error, ErrorCode::General, "read", path)
}
