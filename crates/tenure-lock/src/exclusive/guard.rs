//! Acquiring, releasing and inspecting an exclusive lock.
//!
//! Guarantees: a release removes only the lock that it refers to. The guard removes its lock when dropped, also
//! during a panic; correctness does not depend on that, because the lock of a dead holder is stale.

use std::path::{Path, PathBuf};

use super::error::{ExclusiveError, HeldExclusive, MalformedLock};
use super::guarded_dir::{GuardedDir, Removal, failed, lock_path, read_guarded};
use super::lock::ExclusiveLock;
use crate::identity::{Liveness, ProcessIdentity};
use crate::sys::fork::Owner;
use crate::text;

/// How many times a lock that changes concurrently is read again.
const ATTEMPTS: usize = 100;

/// The result of a release.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Release {
    /// The lock was removed.
    Removed,
    /// There was no lock.
    NotThere,
    /// Another holder's lock was found and kept.
    NotOurs(Box<ExclusiveLock>),
}

/// The status of a directory's lock.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExclusiveStatus {
    /// No lock.
    Free,
    /// The holder is alive, or unknown because it is on another host.
    Held { lock: Box<ExclusiveLock>, liveness: Liveness },
    /// The holder is proven dead. The next acquisition or check removes the lock.
    Stale { lock: Box<ExclusiveLock> },
    /// The file is not a valid lock. It blocks until it is removed manually.
    Malformed(MalformedLock),
}

/// An exclusive lock held by this process. Removed when dropped, unless another lock has replaced it.
#[derive(Debug)]
#[must_use = "the lock is released as soon as this is dropped"]
pub struct ExclusiveGuard {
    directory: PathBuf,
    lock: ExclusiveLock,
    owner: Owner,
    released: bool,
}

impl ExclusiveLock {
    /// Acquires the lock of `directory` for the calling process, until the guard is dropped.
    ///
    /// ```
    /// use tenure_lock::{ExclusiveError, ExclusiveLock, should_skip_database};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path();
    /// let guard = ExclusiveLock::acquire(directory, "ci-runner", "1.0.0")?;
    /// assert!(matches!(ExclusiveLock::acquire(directory, "other", ""), Err(ExclusiveError::Held(_))));
    /// assert!(should_skip_database(directory).skip);
    /// drop(guard);
    /// assert!(!should_skip_database(directory).skip);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire(
        directory: impl AsRef<Path>,
        holder: impl Into<String>,
        version: impl Into<String>,
    ) -> Result<ExclusiveGuard, ExclusiveError> {
        let lock = Self::new(holder, version);
        lock.place(directory.as_ref())?;
        Ok(ExclusiveGuard {
            directory: directory.as_ref().to_owned(),
            lock,
            owner: Owner::current(),
            released: false,
        })
    }

    /// Acquires the lock of `directory` on behalf of another process. It lasts until it is released or that process
    /// ends.
    pub fn acquire_for(
        directory: impl AsRef<Path>,
        holder: impl Into<String>,
        version: impl Into<String>,
        pid: u32,
    ) -> Result<Self, ExclusiveError> {
        let lock = Self::for_process(holder, version, pid)?;
        lock.place(directory.as_ref())?;
        Ok(lock)
    }

    /// Writes this lock to `directory` if there is none, or only a stale one.
    pub fn place(&self, directory: &Path) -> Result<(), ExclusiveError> {
        self.validate().map_err(ExclusiveError::Invalid)?;
        let path = lock_path(directory);
        let text = self.to_json().map_err(|error| failed("write", &path)(error.into()))?;
        let guarded = GuardedDir::enter(directory)?;
        for _ in 0..ATTEMPTS {
            let Some(seen) = super::guarded_dir::read(&guarded.path)? else {
                if guarded.create(text.as_bytes())? {
                    return Ok(());
                }
                continue;
            };
            let lock = Self::from_content(&seen.content)
                .map_err(|source| ExclusiveError::Malformed { path: path.clone(), source })?;
            let liveness = lock.liveness();
            if liveness != Liveness::Dead {
                return Err(ExclusiveError::Held(Box::new(HeldExclusive { path, lock, liveness })));
            }
            if guarded.remove_stale(&seen)? == Removal::Removed {
                tracing::info!("Removed stale lock ({})", text::printable(&lock.holder));
            }
        }
        Err(ExclusiveError::Busy { path })
    }

    /// Replaces `previous` with this lock. [`Release::NotOurs`] or [`Release::NotThere`] if `directory` has another lock
    /// or none, and then nothing is changed.
    pub fn replace(&self, previous: &Self, directory: &Path) -> Result<Release, ExclusiveError> {
        let path = lock_path(directory);
        let text = self.to_json().map_err(|error| failed("write", &path)(error.into()))?;
        // No other tenure process sees the directory without a lock meanwhile.
        let guarded = GuardedDir::enter(directory)?;
        match remove_in(&guarded, |lock| lock == previous)? {
            Release::Removed if !guarded.create(text.as_bytes())? => Err(ExclusiveError::Busy { path }),
            result => Ok(result),
        }
    }

    /// Removes exactly this lock, as previously read or written, from `directory`, regardless of whether its holder
    /// is alive.
    pub fn release(&self, directory: &Path) -> Result<Release, ExclusiveError> {
        remove_if(directory, |lock| lock == self)
    }

    /// Like [`release`](Self::release), also if the lock was [handed](Self::handed_to_this_process) to another process.
    pub fn release_acquisition(&self, directory: &Path) -> Result<Release, ExclusiveError> {
        remove_if(directory, |lock| lock.is_same_acquisition(self))
    }

    /// Removes the lock of `directory` if that process holds it, or if its holder is proven dead.
    pub fn release_for(directory: &Path, pid: u32) -> Result<Release, ExclusiveError> {
        let process = ProcessIdentity::of(pid);
        remove_if(directory, |lock| {
            process.as_ref().is_some_and(|process| lock.is_held_by(process))
                || lock.liveness() == Liveness::Dead
        })
    }

    /// The status of the lock. Removes nothing.
    pub fn status(directory: &Path) -> Result<ExclusiveStatus, ExclusiveError> {
        let Some(seen) = read_guarded(directory)? else {
            return Ok(ExclusiveStatus::Free);
        };
        Ok(match Self::from_content(&seen.content) {
            Err(malformed) => ExclusiveStatus::Malformed(malformed),
            Ok(lock) => {
                let (liveness, lock) = (lock.liveness(), Box::new(lock));
                match liveness {
                    Liveness::Dead => ExclusiveStatus::Stale { lock },
                    Liveness::Alive | Liveness::Unknown => ExclusiveStatus::Held { lock, liveness },
                }
            }
        })
    }
}

fn remove_if(directory: &Path, ours: impl Fn(&ExclusiveLock) -> bool) -> Result<Release, ExclusiveError> {
    remove_in(&GuardedDir::enter(directory)?, ours)
}

fn remove_in(guarded: &GuardedDir, ours: impl Fn(&ExclusiveLock) -> bool) -> Result<Release, ExclusiveError> {
    for _ in 0..ATTEMPTS {
        let Some(seen) = super::guarded_dir::read(&guarded.path)? else {
            return Ok(Release::NotThere);
        };
        let lock = ExclusiveLock::from_content(&seen.content)
            .map_err(|source| ExclusiveError::Malformed { path: guarded.path.clone(), source })?;
        if !ours(&lock) {
            return Ok(Release::NotOurs(Box::new(lock)));
        }
        if guarded.remove_own(&seen)? == Removal::Removed {
            return Ok(Release::Removed);
        }
    }
    Err(ExclusiveError::Busy { path: guarded.path.clone() })
}

impl ExclusiveGuard {
    /// The content that was written.
    pub fn lock(&self) -> &ExclusiveLock {
        &self.lock
    }

    /// Whether the file is unchanged: a tool that ignores locks may have overwritten or removed it.
    pub fn is_held(&self) -> bool {
        self.owner.is_this_process()
            && matches!(ExclusiveLock::status(&self.directory),
                Ok(ExclusiveStatus::Held { lock, .. }) if *lock == self.lock)
    }

    /// Like dropping the guard, but returns the result.
    pub fn release(mut self) -> Result<Release, ExclusiveError> {
        self.release_once()
    }

    fn release_once(&mut self) -> Result<Release, ExclusiveError> {
        if std::mem::replace(&mut self.released, true) || !self.owner.is_this_process() {
            return Ok(Release::NotThere);
        }
        self.lock.release(&self.directory)
    }
}

impl Drop for ExclusiveGuard {
    fn drop(&mut self) {
        if let Err(error) = self.release_once() {
            tracing::warn!("Failed to release exclusive lock: {error}");
        }
    }
}
