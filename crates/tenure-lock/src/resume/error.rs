//! Why a resume lock was not given, as data; the wording is one rendering of it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::data::ResumeLockData;
use crate::identity::Liveness;

/// Why a resume lock could not be taken, kept or given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeLockError {
    /// The id cannot be a lock's name. Nothing was touched.
    #[error("{id:?} cannot name a lock: {reason}")]
    InvalidId { id: String, reason: &'static str },

    /// Somebody holds it.
    #[error("Resume already in progress for job {}\nLock held by: {}\nPlease wait for the other process to complete.", .0.id, .0)]
    Held(Box<HeldLock>),

    /// The file is nobody's we know, so nobody can say that it is free. Only `force` goes on here.
    #[error("Failed to check lock status for {id}: {why} ({})", path.display())]
    Unreadable { id: String, path: PathBuf, why: String },

    /// The lock was ours and is not any more.
    #[error("Lock for {id} is lost: {reason}")]
    Lost { id: String, reason: LostReason },

    /// The file kept changing hands until the deadline, and none of them was ours.
    #[error("Failed to check lock status for {id}: it kept changing")]
    Contended { id: String },

    /// The file system refused.
    #[error("Failed to {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// Who holds a lock, as far as the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// The session or job.
    pub id: String,
    /// The lock file.
    pub path: PathBuf,
    /// What the file says, if it says anything.
    pub holder: Option<ResumeLockData>,
    /// `true` if the operating system vouches for the holder, `false` if only the file's text does.
    pub os_locked: bool,
    /// What is known of the recorded process. `Dead` together with `os_locked` means that a child of it keeps the lock.
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
    /// Somebody else's text is in it: an heir that adopted the lock, or a tool that ignores locks.
    Overwritten,
    /// This is a forked child of the process that holds it.
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
