//! Errors of exclusive locks.

use std::io;
use std::path::PathBuf;

use super::lock::ExclusiveLock;
use crate::identity::Liveness;

/// Why an exclusive lock could not be acquired, read or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExclusiveError {
    /// The lock is held.
    #[error("{} is locked by {}", .0.path.display(), .0.lock)]
    Held(Box<HeldExclusive>),

    /// The file is not a valid lock, so it cannot be shown to be free.
    #[error("{}: {source}", path.display())]
    Malformed { path: PathBuf, source: MalformedLock },

    /// The lock to be written is not valid.
    #[error("not a valid lock: {}", .0.why)]
    Invalid(MalformedLock),

    /// The process that should hold the lock is not running.
    #[error("no process {pid} is running here")]
    NoSuchProcess { pid: u32 },

    /// Another process held the guard, or the lock kept changing, until the deadline.
    #[error("{} is busy: another process kept changing or locking it", path.display())]
    Busy { path: PathBuf },

    /// A file system operation failed.
    #[error("failed to {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// A held exclusive lock.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldExclusive {
    /// The lock file.
    pub path: PathBuf,
    /// The content of the lock file.
    pub lock: ExclusiveLock,
    /// Alive, or unknown for a holder on another host.
    pub liveness: Liveness,
}

/// The text is not a valid lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed lock file: {why}")]
pub struct MalformedLock {
    /// The first problem.
    pub why: String,
}

impl MalformedLock {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}
