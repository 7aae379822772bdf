//! The check that a daemon performs at the start of every cycle: whether to skip this directory.
//!
//! Guarantees: a lock that cannot be read or evaluated means skip. Only a stale lock is removed.

use std::fmt;
use std::path::Path;

use super::error::ExclusiveError;
use super::guarded_dir::{GuardedDir, Removal, Seen, read_guarded};
use super::lock::ExclusiveLock;
use crate::identity::Liveness;
use crate::text;

/// How many times a lock that changes during the check is evaluated again.
const ATTEMPTS: usize = 10;

/// Whether to skip a directory in this cycle, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipDecision {
    /// `true` means skip.
    pub skip: bool,
    /// The current or former holder of the lock.
    pub holder: Option<String>,
    /// The reason.
    pub reason: SkipReason,
}

/// Why a directory is skipped or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// No lock exists.
    NoLock,
    /// The holder of the lock is alive or on another host.
    Held,
    /// The holder was proven dead, and the lock was removed.
    RemovedStale,
    /// The file is not a valid lock, with the problem.
    Malformed(String),
    /// The lock could not be read, or a stale lock could not be removed, with the cause.
    CheckFailed(String),
}

impl SkipDecision {
    fn new(skip: bool, holder: Option<String>, reason: SkipReason) -> Self {
        Self { skip, holder, reason }
    }

    /// The logged line; `None` if no lock exists.
    pub fn log_line(&self) -> Option<String> {
        (self.reason != SkipReason::NoLock).then(|| self.to_string())
    }
}

impl fmt::Display for SkipDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = text::printable(self.holder.as_deref().unwrap_or("unknown"));
        match &self.reason {
            SkipReason::NoLock => f.write_str("No exclusive lock"),
            SkipReason::Held => write!(f, "Skipping database (locked by {holder})"),
            SkipReason::RemovedStale => write!(f, "Removed stale lock ({holder}), proceeding with sync"),
            SkipReason::Malformed(why) => {
                let why = text::printable(why);
                write!(f, "Skipping database (lock check failed: malformed lock file: {why})")
            }
            SkipReason::CheckFailed(why) => {
                write!(f, "Skipping database (lock check failed: {})", text::printable(why))
            }
        }
    }
}

/// Checks whether a daemon must skip `directory`, removes a stale lock, and logs the decision.
pub fn should_skip_database(directory: impl AsRef<Path>) -> SkipDecision {
    let decision = decide(directory.as_ref());
    if let Some(line) = decision.log_line() {
        tracing::info!("{line}");
    }
    decision
}

fn decide(directory: &Path) -> SkipDecision {
    for _ in 0..ATTEMPTS {
        let seen = match read_guarded(directory) {
            Ok(Some(seen)) => seen,
            Ok(None) => return SkipDecision::new(false, None, SkipReason::NoLock),
            Err(error) => return SkipDecision::new(true, None, SkipReason::CheckFailed(error.to_string())),
        };
        let lock = match ExclusiveLock::from_content(&seen.content) {
            Ok(lock) => lock,
            Err(malformed) => return SkipDecision::new(true, None, SkipReason::Malformed(malformed.why)),
        };
        if lock.liveness() != Liveness::Dead {
            return SkipDecision::new(true, Some(lock.holder), SkipReason::Held);
        }
        match remove(directory, &seen) {
            Ok(Removal::Removed) => {
                return SkipDecision::new(false, Some(lock.holder), SkipReason::RemovedStale);
            }
            Ok(Removal::Changed | Removal::Gone) => {}
            Err(error) => {
                let why = format!("stale lock not removed: {error}");
                return SkipDecision::new(true, Some(lock.holder), SkipReason::CheckFailed(why));
            }
        }
    }
    SkipDecision::new(true, None, SkipReason::CheckFailed("it kept changing".to_owned()))
}

fn remove(directory: &Path, seen: &Seen) -> Result<Removal, ExclusiveError> {
    GuardedDir::enter(directory)?.remove_stale(seen)
}
