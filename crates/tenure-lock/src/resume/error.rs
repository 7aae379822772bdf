//! Errors of resume locks.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::data::ResumeLockData;
use crate::identity::Liveness;

/// Why a resume lock could not be acquired, kept or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeLockError {
    /// The id is not a valid lock name. Nothing was changed.
    #[error("{id:?} cannot name a lock: {reason}")]
    InvalidId { id: String, reason: &'static str },

    /// The lock is held.
    #[error("Resume already in progress for job {}\nLock held by: {}\nPlease wait for the other process to complete.", .0.id, .0)]
    Held(Box<HeldLock>),

    /// The content is not recognised, so the lock cannot be shown to be free. Only `force` overrides it.
    #[error("Failed to check lock status for {id}: {why} ({})", path.display())]
    Unreadable { id: String, path: PathBuf, why: String },

    /// The lock was held by this guard and no longer is.
    #[error("Lock for {id} is lost: {reason}")]
    Lost { id: String, reason: LostReason },

    /// The file kept changing until the deadline, without being acquired.
    #[error("Failed to check lock status for {id}: it kept changing")]
    Contended { id: String },

    /// A file system operation failed.
    #[error("Failed to {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// The holder of a lock, as far as the file records it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// The id of the session or job.
    pub id: String,
    /// The path of the lock file.
    pub path: PathBuf,
    /// The content of the file, if readable.
    pub holder: Option<ResumeLockData>,
    /// Whether an OS lock proves that the lock is held; otherwise only the content of the file indicates it.
    pub os_locked: bool,
    /// The liveness of the recorded process. `Dead` with `os_locked` means that a child of it keeps the lock.
    pub liveness: Liveness,
}

impl fmt::Display for HeldLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some(holder) => write!(f, "{holder}"),
            None => f.write_str("unknown process"),
        }
    }
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The file is gone.
    Removed,
    /// Another file has its name.
    Replaced,
    /// The content was replaced, by a child that adopted the lock or by a tool that ignores locks.
    Overwritten,
    /// This process is a forked child of the holder.
    OtherProcess,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removed => "the lock file was removed",
            Self::Replaced => "the lock file was replaced",
            Self::Overwritten => "the lock file was overwritten",
            Self::OtherProcess => "this is a child of the process that holds it",
        })
    }
}
