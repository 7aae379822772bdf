//! Why an exclusive lock was not given, as data.

use std::io;
use std::path::PathBuf;

use super::lock::ExclusiveLock;
use crate::identity::Liveness;

/// Why an exclusive lock could not be taken, read or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExclusiveError {
    /// Somebody has it.
    #[error("{} is locked by {}", .0.path.display(), .0.lock)]
    Held(Box<HeldExclusive>),

    /// The file there is not a valid lock, so nobody can say that it is free.
    #[error("{}: {source}", path.display())]
    Malformed { path: PathBuf, source: MalformedLock },

    /// The lock to be written would not be valid.
    #[error("not a valid lock: {}", .0.why)]
    Invalid(MalformedLock),

    /// The process to hold the lock does not run.
    #[error("no process {pid} runs here")]
    NoSuchProcess { pid: u32 },

    /// Another process of ours was at the lock, or it kept changing, until the deadline.
    #[error("{} kept changing or stayed guarded", path.display())]
    Busy { path: PathBuf },

    /// The file system refused.
    #[error("failed to {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// Who has the lock.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldExclusive {
    /// The lock file.
    pub path: PathBuf,
    /// What it says.
    pub lock: ExclusiveLock,
    /// Alive, or unknown for a holder elsewhere.
    pub liveness: Liveness,
}

/// The text is not a valid lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed lock file: {why}")]
pub struct MalformedLock {
    /// The first thing wrong with it.
    pub why: String,
}

impl MalformedLock {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}
