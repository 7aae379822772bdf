//! Passing a held lock to a child process.
//!
//! Guarantees: the lock is never free between parent and child.
//! While a lent descriptor exists, every program started by any thread inherits it; keep that time short.

use std::fs::File;
use std::os::fd::OwnedFd;

use super::data::{ResumeLockData, read_data};
use super::error::{LostReason, ResumeLockError};
use super::manager::publish;
use super::{ResumeLock, ResumeLockManager};
use crate::lock_file::LockFile;
use crate::sys::file;

impl ResumeLock {
    /// A descriptor that programs started from now on inherit, together with the lock.
    ///
    /// Drop it after the start. The child then keeps the lock if this process is killed. A release by this process
    /// still ends the lock, unless the child has [adopted](ResumeLockManager::adopt) it.
    pub fn lend(&self) -> Result<OwnedFd, ResumeLockError> {
        self.verify()?;
        self.file.duplicate_inheritable().map_err(|source| ResumeLockError::Io {
            action: "lend",
            path: self.path().to_owned(),
            source,
        })
    }
}

impl ResumeLockManager {
    /// Makes the calling process the holder of a lock whose descriptor it inherited. The file then names this
    /// process, and the release by the former holder has no effect.
    pub fn adopt(&self, id: &str, descriptor: OwnedFd) -> Result<ResumeLock, ResumeLockError> {
        let path = self.path_of(id)?;
        let io = |action| {
            let path = path.clone();
            move |source| ResumeLockError::Io { action, path, source }
        };
        let lost = |reason| Err(ResumeLockError::Lost { id: id.to_owned(), reason });
        let inherited = File::from(descriptor);
        file::stop_inheriting(&inherited).map_err(io("adopt"))?;
        // Registering may be retried after a fork, and each try consumes a copy.
        let mut heir = LockFile::from_opening(|| inherited.try_clone()).map_err(io("adopt"))?;
        drop(inherited);
        // The open file is shared with the former holder: before the lock is adopted, closing must not unlock it.
        let locked = heir.try_lock().map_err(io("lock"))?;
        heir.leave_locked();
        if !locked || !heir.is_at(&path).map_err(io("check"))? {
            return lost(LostReason::Replaced);
        }
        if read_data(&heir.read().map_err(io("read"))?).is_none_or(|data| data.tenure.is_none()) {
            return lost(LostReason::Overwritten);
        }
        let data = ResumeLockData::new(id);
        let text = publish(&heir, &path, &data)?;
        heir.try_lock().map_err(io("lock"))?;
        Ok(ResumeLock::new(heir, path, data, text))
    }
}
