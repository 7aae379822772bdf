//! The guard of a resume lock.
//!
//! Guarantees: dropping it, also during a panic, removes the file only if it is still the locked file with the text
//! that was written, and only while the OS lock is held. Correctness does not depend on the drop: the OS lock of a
//! killed holder ends with the process.

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

    /// The id of the session or job.
    pub fn id(&self) -> &str {
        &self.data.job_id
    }

    /// The path of the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content written to the lock file.
    pub fn data(&self) -> &ResumeLockData {
        &self.data
    }

    /// Checks that this process still holds the lock: the path still names the locked file, with the text that was
    /// written.
    ///
    /// Other tenure processes cannot take the lock while this process lives. The check detects programs that ignore
    /// locks: a clean-up of the directory, or a tool that overwrites the file. In a forked child it fails.
    pub fn verify(&self) -> Result<(), ResumeLockError> {
        self.lost()
            .map_or(Ok(()), |reason| Err(ResumeLockError::Lost { id: self.data.job_id.clone(), reason }))
    }

    /// Like dropping the guard, but returns the error.
    pub fn release(mut self) -> Result<(), ResumeLockError> {
        self.release_file()
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

    pub(super) fn release_file(&mut self) -> Result<(), ResumeLockError> {
        if std::mem::replace(&mut self.released, true) {
            return Ok(());
        }
        let result = match self.lost() {
            // A forked child has nothing to release.
            Some(LostReason::OtherProcess) => return Ok(()),
            Some(reason) => {
                // A child that adopted the lock shares the open file; unlocking would release the lock for it as
                // well.
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
        // `release_file` has logged the error; a drop cannot return it.
        let _ = self.release_file();
    }
}
