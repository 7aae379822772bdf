//! `tenure exclusive`: one tool has the whole project to itself, and runners step aside.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::{ErrorCode, Timestamp};
use tenure_lock::{ExclusiveError, ExclusiveLock, ExclusiveStatus, Liveness};

use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};

mod acquire;
mod release;
mod run;
mod status;

/// Take the whole project for one tool; runners step aside
///
/// Cooperative, not security: whoever ignores the lock is not stopped.
///
/// Example: tenure exclusive run --holder release -- ./release.sh
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Acquire(acquire::Args),
    Release(release::Args),
    Status(status::Args),
    Run(run::Args),
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            Some(Verb::Acquire(_)) => "acquire",
            Some(Verb::Release(_)) => "release",
            None | Some(Verb::Status(_)) => "status",
            Some(Verb::Run(_)) => "run",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    match args.verb.unwrap_or(Verb::Status(status::Args {})) {
        Verb::Acquire(args) => acquire::run(app, args).map(Some),
        Verb::Release(args) => release::run(app, args).map(Some),
        Verb::Status(args) => status::run(app, args).map(Some),
        Verb::Run(args) => run::run(app, args).map(Some),
    }
}

fn folder(app: &App<'_>) -> Outcome<PathBuf> {
    let paths = app.find()?.paths;
    crate::ownership::check(&paths, app.env)?;
    Ok(paths.folder())
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
                    "Its process is on another machine; if that is gone, somebody who knows has to remove the file."
                        .into(),
                );
            }
            report.hint("wait for it", "tenure exclusive acquire --holder NAME --wait")
        }
        ExclusiveError::Malformed { path, source } => {
            let mut report = Report::new(ErrorCode::ExclusiveLocked, format!("{}: {source}", path.display()));
            *report.details = json!({"path": path, "malformed": source.why});
            report.context.push("It counts as locked until somebody mends or removes the file.".into());
            report
        }
        ExclusiveError::Io { source, .. } if is_permission(&source) => {
            Report::new(ErrorCode::PermissionDenied, format!("the lock file: {source}"))
        }
        ExclusiveError::Invalid(_) | ExclusiveError::NoSuchProcess { .. } => Report::usage(error.to_string()),
        other => Report::new(ErrorCode::General, other.to_string()),
    }
}

fn is_permission(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

fn look(folder: &Path) -> Outcome<ExclusiveStatus> {
    ExclusiveLock::status(folder).map_err(failed)
}

/// A lock that is in the way, for those who only report it.
pub(super) struct Seen {
    pub(super) sentence: String,
    pub(super) object: Value,
}

/// The first lock of a project, our own or that of beads, that keeps runners away. Free and stale are in nobody's way.
pub(super) fn seen(root: &Path) -> Option<Seen> {
    tenure_runner::exclusion::folders(root).iter().find_map(|folder| seen_in(folder))
}

fn seen_in(folder: &Path) -> Option<Seen> {
    match ExclusiveLock::status(folder) {
        Ok(ExclusiveStatus::Held { lock, liveness }) => {
            Some(Seen { sentence: describe(&lock), object: object(&lock, liveness) })
        }
        Ok(ExclusiveStatus::Malformed(malformed)) => {
            Some(Seen { sentence: malformed.to_string(), object: json!({"malformed": malformed.why}) })
        }
        _ => None,
    }
}
