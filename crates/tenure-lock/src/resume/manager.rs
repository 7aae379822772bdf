//! Taking resume locks.
//!
//! Guarantees: `acquire` never waits for a holder. What it repeats, up to a deadline, are races it lost to somebody who
//! let go at the same moment.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::data::{ResumeLockData, Verdict, judge_content, nonce, read_data};
use super::error::{HeldLock, ResumeLockError};
use super::{ResumeLock, id};
use crate::identity::{Host, Liveness};
use crate::lock_file::LockFile;
use crate::{clock, sys};

/// Nobody keeps a name changing for this long except by intent.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long a lock may be had by a process that is not named in the file yet: enough to judge a stale one and rewrite it.
const SETTLING: Duration = Duration::from_millis(50);

/// Takes and inspects the resume locks of one directory. Cheap to clone; any number may exist.
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

/// What one look at the file led to.
enum Attempt {
    Taken(ResumeLock),
    Refused(ResumeLockError),
    /// The name came to mean another file meanwhile.
    Moved,
    /// Locked by a process that the file does not name yet.
    Unsettled(ResumeLockError),
}

impl ResumeLockManager {
    /// Locks are the files of `storage_dir/resume_locks`, which is made if need be. Remnants of killed processes that
    /// never came to hold anything are cleared away.
    pub fn new(storage_dir: impl Into<PathBuf>) -> Result<Self, ResumeLockError> {
        let locks_dir = storage_dir.into().join("resume_locks");
        sys::file::create_dir_all(&locks_dir).map_err(failed("create", &locks_dir))?;
        let manager = Self { locks_dir };
        manager.sweep();
        Ok(manager)
    }

    /// Takes the lock, or says who holds it. Never waits for the holder.
    pub fn acquire(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.take(id, false)
    }

    /// As [`acquire`](Self::acquire), but overrides a file whose holder is remote or foreign, and one that is unreadable.
    /// A living OS lock is still refused: its holder is certainly at work.
    pub fn acquire_forced(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.take(id, true)
    }

    /// [`acquire`](Self::acquire) under the name and shape it has in async code. It does not block long enough to need a
    /// runtime's help.
    #[cfg(feature = "async")]
    #[expect(clippy::unused_async, reason = "the signature is the point")]
    pub async fn acquire_lock(&self, id: &str) -> Result<ResumeLock, ResumeLockError> {
        self.acquire(id)
    }

    /// Who holds the lock now, or `None` if it is free to be taken. Changes nothing; the answer is old when it arrives.
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
                Attempt::Unsettled(refusal) if elapsed > SETTLING => return Err(refusal),
                Attempt::Unsettled(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Attempt::Moved if elapsed > DEADLINE => {
                    return Err(ResumeLockError::Contended { id: id.to_owned() });
                }
                // A name that keeps moving is not worth a busy processor.
                Attempt::Moved if elapsed > SETTLING => std::thread::sleep(pause),
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
        // A tool that ignores locks may have removed the stale file meanwhile, too.
        if !file.is_at(path).map_err(failed("check", path))? {
            return Ok(Attempt::Moved);
        }
        Ok(Attempt::Taken(ResumeLock::new(file, path.to_owned(), data, text)))
    }

    /// Makes the name appear with its text complete and its lock held.
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
        // Left behind it would only be swept later.
        let _ = std::fs::remove_file(&private);
        match named {
            Ok(true) => Ok(Attempt::Taken(ResumeLock::new(file, path.to_owned(), data, text))),
            Ok(false) => Ok(Attempt::Moved),
            // Somebody was faster, or swept our private file before it was locked.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(Attempt::Moved)
            }
            Err(error) => Err(failed("create", path)(error)),
        }
    }

    /// Removes private files whose makers were killed. One that is in use is locked, or is about to be: its maker then
    /// finds it gone and makes another.
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
                // Another sweeper may have been faster, and a later one will do if this fails.
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

/// Somebody has the OS lock. Whether the file names the holder yet decides if it is worth another look.
fn refused_by_os(id: &str, path: &Path, holder: Option<ResumeLockData>) -> Attempt {
    let liveness = match holder.as_ref().and_then(|data| data.tenure.as_ref()) {
        // Most refusals are settled by the cheap question.
        Some(mark) if sys::process::exists(mark.identity.pid) => Liveness::Alive,
        Some(mark) => mark.identity.liveness(),
        None => Liveness::Unknown,
    };
    let settled = liveness != Liveness::Dead && holder.as_ref().is_some_and(|data| data.tenure.is_some());
    let held = HeldLock { id: id.to_owned(), path: path.to_owned(), holder, os_locked: true, liveness };
    let refusal = ResumeLockError::Held(Box::new(held));
    if settled { Attempt::Refused(refusal) } else { Attempt::Unsettled(refusal) }
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
