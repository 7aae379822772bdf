//! What a daemon asks at the start of every cycle: may I touch this directory?
//!
//! Guarantees: whatever cannot be read or judged means no. A stale lock is removed on the way, and nothing else is.

use std::fmt;
use std::path::Path;

use super::error::ExclusiveError;
use super::lock::ExclusiveLock;
use super::place::{Place, Removal, Seen, look_settled};
use crate::identity::Liveness;
use crate::text;

/// How often a lock that changes while it is judged is judged again.
const ATTEMPTS: usize = 10;

/// Whether to leave a directory alone in this cycle, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipDecision {
    /// `true`: leave it alone.
    pub skip: bool,
    /// Who has, or had, the lock.
    pub holder: Option<String>,
    /// Why.
    pub reason: SkipReason,
}

/// Why a directory is skipped or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// There is no lock.
    NoLock,
    /// The lock's holder is alive, or elsewhere.
    Held,
    /// The holder was proven dead, and the lock was removed.
    RemovedStale,
    /// The file is not a valid lock; why not.
    Malformed(String),
    /// The lock could not be read, or a stale one not removed; why not.
    CheckFailed(String),
}

impl SkipDecision {
    fn new(skip: bool, holder: Option<String>, reason: SkipReason) -> Self {
        Self { skip, holder, reason }
    }

    /// The line that was logged; nothing is said where there is no lock.
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

/// Asks whether a daemon has to leave `directory` alone, removes a stale lock if there is one, and logs what it did.
pub fn should_skip_database(directory: impl AsRef<Path>) -> SkipDecision {
    let decision = decide(directory.as_ref());
    if let Some(line) = decision.log_line() {
        tracing::info!("{line}");
    }
    decision
}

fn decide(directory: &Path) -> SkipDecision {
    for _ in 0..ATTEMPTS {
        let seen = match look_settled(directory) {
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
    Place::enter(directory)?.remove_stale(seen)
}
