//! Taking an exclusive lock, giving it back, and asking about it.
//!
//! Guarantees: a release removes only the very lock it names. The guard removes its lock when dropped, also in a panic;
//! nothing depends on that, because a dead holder's lock is stale.

use std::path::{Path, PathBuf};

use super::error::{ExclusiveError, HeldExclusive, MalformedLock};
use super::lock::ExclusiveLock;
use super::place::{Place, Removal, failed, lock_path, look_settled};
use crate::identity::{Liveness, ProcessIdentity};
use crate::sys::fork::Owner;
use crate::text;

/// How often a lock that changes under our hands is looked at again.
const ATTEMPTS: usize = 100;

/// What a release found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Release {
    /// The lock is gone now.
    Removed,
    /// There was none.
    NotThere,
    /// Somebody else's is there; it was left.
    NotOurs(Box<ExclusiveLock>),
}

/// What is in the place of the lock.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExclusiveStatus {
    /// No lock.
    Free,
    /// A lock whose holder is alive, or unknown because it is elsewhere.
    Held { lock: Box<ExclusiveLock>, liveness: Liveness },
    /// A lock whose holder is proven dead. The next taker or check removes it.
    Stale { lock: Box<ExclusiveLock> },
    /// A file that is not a valid lock. It blocks until a person decides.
    Malformed(MalformedLock),
}

/// An exclusive lock held by this process. Removed when dropped, unless somebody else's took its place.
#[derive(Debug)]
#[must_use = "the lock is released as soon as this is dropped"]
pub struct ExclusiveGuard {
    directory: PathBuf,
    lock: ExclusiveLock,
    owner: Owner,
    released: bool,
}

impl ExclusiveLock {
    /// Takes the lock of `directory` for the calling process, for as long as the guard lives.
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

    /// Takes the lock of `directory` on behalf of another process. It stays until it is released or that process ends.
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

    /// Writes this lock into `directory`, if there is none, or only a stale one.
    pub fn place(&self, directory: &Path) -> Result<(), ExclusiveError> {
        self.validate().map_err(ExclusiveError::Invalid)?;
        let path = lock_path(directory);
        let text = self.to_json().map_err(|error| failed("write", &path)(error.into()))?;
        let place = Place::enter(directory)?;
        for _ in 0..ATTEMPTS {
            let Some(seen) = super::place::look(&place.path)? else {
                if place.create(text.as_bytes())? {
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
            if place.remove_stale(&seen)? == Removal::Removed {
                tracing::info!("Removed stale lock ({})", text::printable(&lock.holder));
            }
        }
        Err(ExclusiveError::Busy { path })
    }

    /// Removes exactly this lock, as read or written before, from `directory`. Does not ask whether its holder lives.
    pub fn release(&self, directory: &Path) -> Result<Release, ExclusiveError> {
        remove_if(directory, |lock| lock == self)
    }

    /// Removes the lock of `directory` if it is that process's, or its holder is proven dead.
    pub fn release_for(directory: &Path, pid: u32) -> Result<Release, ExclusiveError> {
        let process = ProcessIdentity::of(pid);
        remove_if(directory, |lock| {
            process.as_ref().is_some_and(|process| lock.is_held_by(process))
                || lock.liveness() == Liveness::Dead
        })
    }

    /// What is in the place of the lock. Removes nothing.
    pub fn status(directory: &Path) -> Result<ExclusiveStatus, ExclusiveError> {
        let Some(seen) = look_settled(directory)? else {
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
    let place = Place::enter(directory)?;
    for _ in 0..ATTEMPTS {
        let Some(seen) = super::place::look(&place.path)? else {
            return Ok(Release::NotThere);
        };
        let lock = ExclusiveLock::from_content(&seen.content)
            .map_err(|source| ExclusiveError::Malformed { path: place.path.clone(), source })?;
        if !ours(&lock) {
            return Ok(Release::NotOurs(Box::new(lock)));
        }
        if place.remove_own(&seen)? == Removal::Removed {
            return Ok(Release::Removed);
        }
    }
    Err(ExclusiveError::Busy { path: place.path })
}

impl ExclusiveGuard {
    /// What we wrote.
    pub fn lock(&self) -> &ExclusiveLock {
        &self.lock
    }

    /// Whether the file is still ours: a tool that ignores locks may have overwritten or removed it.
    pub fn is_held(&self) -> bool {
        self.owner.is_this_process()
            && matches!(ExclusiveLock::status(&self.directory),
                Ok(ExclusiveStatus::Held { lock, .. }) if *lock == self.lock)
    }

    /// As dropping, but says what was found.
    pub fn release(mut self) -> Result<Release, ExclusiveError> {
        self.let_go()
    }

    fn let_go(&mut self) -> Result<Release, ExclusiveError> {
        if std::mem::replace(&mut self.released, true) || !self.owner.is_this_process() {
            return Ok(Release::NotThere);
        }
        self.lock.release(&self.directory)
    }
}

impl Drop for ExclusiveGuard {
    fn drop(&mut self) {
        if let Err(error) = self.let_go() {
            tracing::warn!("Failed to release exclusive lock: {error}");
        }
    }
}
