//! Acquiring resume locks.
//!
//! Guarantees: `acquire` never waits for a holder. It only retries, up to a deadline, when the lock was released
//! concurrently.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::data::{ResumeLockData, Verdict, judge_content, nonce, read_data};
use super::error::{HeldLock, ResumeLockError};
use super::{ResumeLock, id};
use crate::identity::{Host, Liveness};
use crate::lock_file::LockFile;
use crate::{clock, sys};

/// How long to retry while the file at the path keeps changing. Reached only if a program changes it deliberately.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long the OS lock may be held before the file names its holder: enough to evaluate a stale file and rewrite it.
const UNNAMED_GRACE: Duration = Duration::from_millis(50);

/// Acquires and inspects the resume locks of one directory. Cheap to clone; any number of managers may exist.
///
/// ```
/// use tenure_lock::{ResumeLockError, ResumeLockManager};
///
/// # let storage = tempfile::tempdir()?;
/// let manager = ResumeLockManager::new(storage.path())?;
/// let lock = manager.acquire("session-abc")?;
/// assert!(matches!(manager.acquire("session-abc"), Err(ResumeLockError::Held(held)) if held.os_locked));
/// drop(lock);
/// manager.acquire("session-abc")?.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ResumeLockManager {
    locks_dir: PathBuf,
}

/// The result of one attempt to acquire.
enum Attempt {
    Taken(ResumeLock),
    Refused(ResumeLockError),
    /// The path names a different file than the one that was opened.
    Moved,
    /// Locked by a process that the file does not name yet.
    HolderUnnamed(ResumeLockError),
}

impl ResumeLockManager {
    /// Uses the files in `storage_dir/resume_locks`, creating the directory if necessary. Removes private files left
    /// by processes that were killed before they acquired a lock.
    pub fn new(storage_dir: impl Into<PathBuf>) -> Result<Self, ResumeLockError> {
        let locks_dir = storage_dir.into().join("resume_locks");
        sys::file::create_dir_all(&locks_dir).map_err(failed("create", &locks_dir))?;
        let manager = Self { locks_dir };
        manager.sweep();
        Ok(manager)
    }

    /// Acquires the lock, or returns its holder in the error. Never waits for the holder.
    pub fn acquire(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.take(id, false)
    }

    /// Like [`acquire`](Self::acquire), but overrides a file whose holder is remote or foreign, or that is
    /// unreadable. A live OS lock is still refused, because its holder is certainly running.
    pub fn acquire_forced(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.take(id, true)
    }

    /// An async version of [`acquire`](Self::acquire). It does not block long enough to need a runtime's blocking
    /// pool.
    #[cfg(feature = "async")]
    #[expect(clippy::unused_async, reason = "async callers expect a future")]
    pub async fn acquire_lock(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.acquire(id)
    }

    /// The current holder, or `None` if the lock is free. Changes nothing; the answer may be outdated when it is
    /// returned.
    pub fn holder(&self, id: &str) -> Result<Option<HeldLock>, ResumeLockError> {
        let path = self.path_of(id)?;
        let mut file = match LockFile::open_read_only(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error(id, &path, error)),
        };
        let os_locked = !file.try_lock().map_err(failed("lock", &path))?;
        let content = file.read().map_err(failed("read", &path))?;
        let held = |holder: Option<ResumeLockData>, liveness| {
            Ok(Some(HeldLock { id: id.to_owned(), path: path.clone(), holder, os_locked, liveness }))
        };
        if os_locked {
            let data = read_data(&content);
            let liveness = data.as_ref().map_or(Liveness::Unknown, ResumeLockData::liveness);
            return held(data, liveness);
        }
        match judge_content(&content, &Host::here(), sys::process::probe) {
            Verdict::Free(_) => Ok(None),
            Verdict::Taken(data, liveness) => held(Some(data), liveness),
            Verdict::Unreadable(why) => Err(ResumeLockError::Unreadable { id: id.to_owned(), path, why }),
        }
    }

    pub(super) fn path_of(&self, id: &str) -> Result<PathBuf, ResumeLockError> {
        id::validate(id)?;
        Ok(self.locks_dir.join(format!("{id}.lock")))
    }

    fn take(&self, id: &str, force: bool) -> Result<ResumeLock, ResumeLockError> {
        let path = self.path_of(id)?;
        let mut began = None;
        let mut pause = Duration::from_micros(50);
        loop {
            let attempt = self.attempt(id, &path, force)?;
            let elapsed = began.get_or_insert_with(Instant::now).elapsed();
            match attempt {
                Attempt::Taken(lock) => return Ok(lock),
                Attempt::Refused(refusal) => return Err(refusal),
                Attempt::HolderUnnamed(refusal) if elapsed > UNNAMED_GRACE => return Err(refusal),
                Attempt::HolderUnnamed(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Attempt::Moved if elapsed > DEADLINE => {
                    return Err(ResumeLockError::Contended { id: id.to_owned() });
                }
                // Avoids a busy loop while the file keeps changing.
                Attempt::Moved if elapsed > UNNAMED_GRACE => std::thread::sleep(pause),
                Attempt::Moved => {}
            }
        }
    }

    fn attempt(&self, id: &str, path: &Path, force: bool) -> Result<Attempt, ResumeLockError> {
        let mut file = match LockFile::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.create(id, path),
            Err(error) => return Err(open_error(id, path, error)),
        };
        let locked = file.try_lock().map_err(failed("lock", path))?;
        if !file.is_at(path).map_err(failed("check", path))? {
            return Ok(Attempt::Moved);
        }
        let content = file.read().map_err(failed("read", path))?;
        if !locked {
            return Ok(refused_by_os(id, path, read_data(&content)));
        }
        match judge_content(&content, &Host::here(), sys::process::probe) {
            Verdict::Free(Some(dead)) => {
                tracing::warn!("Removing stale lock for {id} (PID {} no longer running)", dead.process_id);
            }
            Verdict::Free(None) => {}
            Verdict::Taken(data, _) if force => tracing::warn!("Overriding lock for {id} ({data})"),
            Verdict::Unreadable(why) if force => tracing::warn!("Overriding lock for {id} ({why})"),
            Verdict::Taken(data, liveness) => {
                let held = HeldLock {
                    id: id.to_owned(),
                    path: path.to_owned(),
                    holder: Some(data),
                    os_locked: false,
                    liveness,
                };
                return Ok(Attempt::Refused(ResumeLockError::Held(Box::new(held))));
            }
            Verdict::Unreadable(why) => {
                let refusal = ResumeLockError::Unreadable { id: id.to_owned(), path: path.to_owned(), why };
                return Ok(Attempt::Refused(refusal));
            }
        }
        let data = ResumeLockData::new(id);
        let text = publish(&file, path, &data)?;
        // A tool that ignores locks may have removed the stale file concurrently.
        if !file.is_at(path).map_err(failed("check", path))? {
            return Ok(Attempt::Moved);
        }
        Ok(Attempt::Taken(ResumeLock::new(file, path.to_owned(), data, text)))
    }

    /// Creates the lock file with complete content and the OS lock held, then links it to its name.
    fn create(&self, id: &str, path: &Path) -> Result<Attempt, ResumeLockError> {
        let data = ResumeLockData::new(id);
        let text = data.to_text().map_err(|error| failed("write", path)(error.into()))?;
        let private = self.locks_dir.join(format!(".{id}.{}.tmp", nonce(data.process_id, clock::now())));
        let mut file = LockFile::create(&private).map_err(failed("create", &private))?;
        let named = (|| -> io::Result<bool> {
            if !file.try_lock()? {
                return Ok(false);
            }
            file.write_all(&text)?;
            std::fs::hard_link(&private, path)?;
            Ok(true)
        })();
        // If this fails, a later sweep removes the file.
        let _ = std::fs::remove_file(&private);
        match named {
            Ok(true) => Ok(Attempt::Taken(ResumeLock::new(file, path.to_owned(), data, text))),
            Ok(false) => Ok(Attempt::Moved),
            // Another process created the lock first, or swept the private file before it was locked.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(Attempt::Moved)
            }
            Err(error) => Err(failed("create", path)(error)),
        }
    }

    /// Removes private files whose creators were killed. A private file in use is locked or about to be locked; if it
    /// is swept in between, its creator notices and retries.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.locks_dir) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !hidden || path.extension().is_none_or(|extension| extension != "tmp") {
                continue;
            }
            if LockFile::open(&path).and_then(|mut file| file.try_lock()).unwrap_or(false) {
                // Another process may have removed it first; if this fails, a later sweep removes it.
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

pub(super) fn publish(
    file: &LockFile,
    path: &Path,
    data: &ResumeLockData,
) -> Result<Vec<u8>, ResumeLockError> {
    let text = data.to_text().map_err(|error| failed("write", path)(error.into()))?;
    file.replace(&text).map_err(failed("write", path))?;
    Ok(text)
}

/// The OS lock is held. Whether the file already names the holder determines if a retry is useful.
fn refused_by_os(id: &str, path: &Path, holder: Option<ResumeLockData>) -> Attempt {
    let liveness = match holder.as_ref().and_then(|data| data.tenure.as_ref()) {
        // A cheap existence check suffices for most refusals.
        Some(mark) if sys::process::exists(mark.identity.pid) => Liveness::Alive,
        Some(mark) => mark.identity.liveness(),
        None => Liveness::Unknown,
    };
    let is_named = liveness != Liveness::Dead && holder.as_ref().is_some_and(|data| data.tenure.is_some());
    let held = HeldLock { id: id.to_owned(), path: path.to_owned(), holder, os_locked: true, liveness };
    let refusal = ResumeLockError::Held(Box::new(held));
    if is_named { Attempt::Refused(refusal) } else { Attempt::HolderUnnamed(refusal) }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ResumeLockError {
    move |source| ResumeLockError::Io { action, path: path.to_owned(), source }
}

fn open_error(id: &str, path: &Path, error: io::Error) -> ResumeLockError {
    if error.kind() == io::ErrorKind::InvalidInput {
        return ResumeLockError::Unreadable {
            id: id.to_owned(),
            path: path.to_owned(),
            why: error.to_string(),
        };
    }
    failed("open", path)(error)
}
