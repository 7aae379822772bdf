//! `tenure exclusive`: the lock that gives one tool the whole project and pauses its runners.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::hints;
use tenure_core::{ErrorCode, Timestamp};
use tenure_lock::{ExclusiveError, ExclusiveLock, ExclusiveStatus, Liveness};
use tenure_runner::exclusion;

use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::verbs::verbs;

mod acquire;
mod release;
mod run;
pub(crate) mod start;
mod status;

/// Lock the whole project for one tool; runners pause
///
/// The lock is advisory: a program that ignores it is not stopped.
///
/// Example: tenure exclusive run --holder release -- ./release.sh
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default Status;
    "acquire" => Acquire(acquire),
    "release" => Release(release),
    "status" => Status(status),
    "run" => Run(run),
}

fn root(app: &App<'_>) -> CommandResult<PathBuf> {
    let paths = app.find()?.paths;
    crate::ownership::check(&paths, app.env)?;
    Ok(paths.root)
}

fn object(lock: &ExclusiveLock, liveness: Liveness) -> Value {
    json!({
        "holder": lock.holder,
        "pid": lock.pid,
        "hostname": lock.hostname,
        "startedAt": lock.started_at.to_string(),
        "version": lock.version,
        "alive": match liveness {
            Liveness::Alive => Some(true),
            Liveness::Dead => Some(false),
            Liveness::Unknown => None,
        },
    })
}

/// `release, pid 123 on host, since …`.
fn describe(lock: &ExclusiveLock) -> String {
    let since =
        Timestamp::parse(&lock.started_at.to_string()).map_or_else(String::new, Timestamp::to_seconds);
    format!("{}, pid {} on {}, since {since}", lock.holder, lock.pid, lock.hostname)
}

fn failed(error: ExclusiveError) -> Report {
    match error {
        ExclusiveError::Held(held) => {
            let mut report = Report::new(
                ErrorCode::ExclusiveLocked,
                format!("the project is locked by {}", describe(&held.lock)),
            );
            *report.details = json!({
                "lockedBy": held.lock.holder,
                "holder": object(&held.lock, held.liveness),
                "path": held.path,
            });
            if held.liveness == Liveness::Unknown {
                report.context.push(
                    "Its process is on another machine. If that machine is gone, remove the lock file by hand."
                        .into(),
                );
            }
            report.hint(hints::show_exclusive())
        }
        ExclusiveError::Malformed { path, source } => {
            let mut report = Report::new(ErrorCode::ExclusiveLocked, format!("{}: {source}", path.display()));
            *report.details = json!({"path": path, "malformed": source.why});
            report.context.push("The project counts as locked until the file is repaired or removed.".into());
            report.hint(hints::remove_exclusive())
        }
        ExclusiveError::Io { source, .. } if is_permission(&source) => {
            Report::new(ErrorCode::PermissionDenied, format!("cannot access the lock file: {source}"))
        }
        ExclusiveError::Invalid(_) | ExclusiveError::NoSuchProcess { .. } => Report::usage(error.to_string()),
        other => Report::new(ErrorCode::General, other.to_string()),
    }
}

fn is_permission(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

fn lock_status(root: &Path) -> CommandResult<ExclusiveStatus> {
    exclusion::status(root).map_err(failed)
}

/// A lock that pauses runners, as `status` and `why` report it.
pub(super) struct LockView {
    pub(super) sentence: String,
    pub(super) object: Value,
}

/// The lock that pauses runners. A stale lock does not.
pub(super) fn blocking_lock(root: &Path) -> Option<LockView> {
    match exclusion::status(root) {
        Ok(ExclusiveStatus::Held { lock, liveness }) => {
            Some(LockView { sentence: describe(&lock), object: object(&lock, liveness) })
        }
        Ok(ExclusiveStatus::Malformed(malformed)) => {
            Some(LockView { sentence: malformed.to_string(), object: json!({"malformed": malformed.why}) })
        }
        _ => None,
    }
}
