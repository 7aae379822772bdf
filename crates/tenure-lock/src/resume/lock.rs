//! The guard of a resume lock.
//!
//! Guarantees: dropping it, also in a panic, removes the file only if it is still the one we locked with the text we
//! wrote, while the OS lock is still held. Nothing depends on the drop: a killed holder's lock ends with the process.

use std::io;
use std::path::{Path, PathBuf};

use super::data::ResumeLockData;
use super::error::{LostReason, ResumeLockError};
use crate::lock_file::{Content, LockFile};

/// A held resume lock. Released when dropped.
#[derive(Debug)]
#[must_use = "the lock is released as soon as this is dropped"]
pub struct ResumeLock {
    pub(super) file: LockFile,
    pub(super) path: PathBuf,
    pub(super) data: ResumeLockData,
    pub(super) text: Vec<u8>,
    pub(super) released: bool,
}

impl ResumeLock {
    pub(super) fn new(file: LockFile, path: PathBuf, data: ResumeLockData, text: Vec<u8>) -> Self {
        tracing::info!("Acquired resume lock for {}", data.job_id);
        Self { file, path, data, text, released: false }
    }

    /// The session or job.
    pub fn id(&self) -> &str {
        &self.data.job_id
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What we wrote into it.
    pub fn data(&self) -> &ResumeLockData {
        &self.data
    }

    /// Whether this process still holds the lock: the name still stands for our file, with our text.
    ///
    /// Other tenure processes cannot take it while we live. This notices those who ignore locks: a clean-up of the
    /// directory, a tool that overwrites. In a forked child the answer is no.
    pub fn verify(&self) -> Result<(), ResumeLockError> {
        self.lost()
            .map_or(Ok(()), |reason| Err(ResumeLockError::Lost { id: self.data.job_id.clone(), reason }))
    }

    /// As dropping, but says what went wrong.
    pub fn release(mut self) -> Result<(), ResumeLockError> {
        self.let_go()
    }

    fn lost(&self) -> Option<LostReason> {
        if !self.file.is_this_process() {
            return Some(LostReason::OtherProcess);
        }
        match self.file.is_at(&self.path) {
            Ok(true) => {}
            Ok(false) if self.path.symlink_metadata().is_ok() => return Some(LostReason::Replaced),
            Ok(false) | Err(_) => return Some(LostReason::Removed),
        }
        match self.file.read() {
            Ok(Content::Bytes(bytes)) if bytes.trim_ascii_end() == self.text.trim_ascii_end() => None,
            Ok(_) | Err(_) => Some(LostReason::Overwritten),
        }
    }

    pub(super) fn let_go(&mut self) -> Result<(), ResumeLockError> {
        if std::mem::replace(&mut self.released, true) {
            return Ok(());
        }
        let result = match self.lost() {
            // The child of a holder owes nobody a release.
            Some(LostReason::OtherProcess) => return Ok(()),
            Some(reason) => {
                // An heir that adopted the lock shares the open file; unlocking would take the lock from it.
                self.file.leave_locked();
                Err(ResumeLockError::Lost { id: self.data.job_id.clone(), reason })
            }
            None => match std::fs::remove_file(&self.path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    Err(ResumeLockError::Io { action: "remove", path: self.path.clone(), source })
                }
                Ok(()) | Err(_) => Ok(()),
            },
        };
        match &result {
            Ok(()) => tracing::info!("Released resume lock for {}", self.data.job_id),
            Err(error) => tracing::warn!("Failed to release lock for {}: {error}", self.data.job_id),
        }
        result
    }
}

impl Drop for ResumeLock {
    fn drop(&mut self) {
        // Said in the log; a drop has nobody to tell.
        let _ = self.let_go();
    }
}
