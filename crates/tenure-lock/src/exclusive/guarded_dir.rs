//! The lock file in its directory, and how it is created and removed.
//!
//! Guarantees: the directory guard excludes other tenure processes, so operations here only have to be safe against
//! tools that ignore the guard and overwrite, replace, create or remove the file. Removal therefore never unlinks by
//! name: the file is first moved aside, then compared with the one that was evaluated, and put back if it differs. If
//! a process is killed in between, the next process that takes the guard completes the operation.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::EXCLUSIVE_LOCK_FILE;
use super::error::ExclusiveError;
use super::lock::ExclusiveLock;
use crate::identity::Liveness;
use crate::lock_file::{Content, LockFile};
use crate::sys::file::FileId;

/// The guard is held for microseconds; a longer wait means that its holder is stopped.
const DEADLINE: Duration = Duration::from_secs(2);

/// The time that a tool may need between opening a stale file and writing to it, concurrently with its removal.
const OVERWRITE_GRACE: Duration = Duration::from_millis(10);

/// A lock file at the time it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    id: Option<FileId>,
    pub(super) content: Content,
}

/// The result of a removal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Removed,
    /// The file differs from the expected one and was kept.
    Changed,
    /// The file no longer exists.
    Gone,
}

/// The directory with its guard held.
#[derive(Debug)]
pub(super) struct GuardedDir {
    pub(super) path: PathBuf,
    aside: PathBuf,
    fresh: PathBuf,
    _guard: LockFile,
}

pub(super) fn lock_path(directory: &Path) -> PathBuf {
    directory.join(EXCLUSIVE_LOCK_FILE)
}

pub(super) fn read(path: &Path) -> Result<Option<Seen>, ExclusiveError> {
    let file = match LockFile::open_read_only(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let content = file.read().map_err(failed("read", path))?;
    Ok(Some(Seen { id: file.id().map_err(failed("read", path))?, content }))
}

/// Like [`read`], but takes the guard before it reports an absent file, because a removal may have moved the file
/// aside.
pub(super) fn read_guarded(directory: &Path) -> Result<Option<Seen>, ExclusiveError> {
    let path = lock_path(directory);
    if let Some(seen) = read(&path)? {
        return Ok(Some(seen));
    }
    match GuardedDir::enter(directory) {
        Ok(guarded) => read(&guarded.path),
        Err(ExclusiveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl GuardedDir {
    pub(super) fn enter(directory: &Path) -> Result<Self, ExclusiveError> {
        let mut guard = LockFile::guard_of(directory).map_err(failed("open", directory))?;
        let mut began = None;
        let mut pause = Duration::from_micros(20);
        while !guard.try_lock().map_err(failed("lock", directory))? {
            if began.get_or_insert_with(Instant::now).elapsed() > DEADLINE {
                return Err(ExclusiveError::Busy { path: directory.to_owned() });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        let name = |suffix| directory.join(format!("{EXCLUSIVE_LOCK_FILE}{suffix}"));
        let guarded = Self { path: name(""), aside: name(".aside"), fresh: name(".new"), _guard: guard };
        guarded.finish_interrupted_removal()?;
        Ok(guarded)
    }

    /// Creates the lock file with complete content. `false` if the name exists.
    pub(super) fn create(&self, text: &[u8]) -> Result<bool, ExclusiveError> {
        remove_if_there(&self.fresh)?;
        let file = LockFile::create(&self.fresh).map_err(failed("create", &self.fresh))?;
        // Unlike a resume lock, this file is evaluated by its content alone. An empty file after a power loss would
        // need manual clean-up, so the content is flushed first.
        let linked = file
            .write_all(text)
            .and_then(|()| file.sync())
            .and_then(|()| std::fs::hard_link(&self.fresh, &self.path));
        let tidied = remove_if_there(&self.fresh);
        match linked {
            Ok(()) => tidied.map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => tidied.map(|()| false),
            Err(error) => Err(failed("create", &self.path)(error)),
        }
    }

    /// Removes a stale file if it is unchanged. Another tool may be about to write to it, so the moved file is
    /// compared again after a delay.
    pub(super) fn remove_stale(&self, seen: &Seen) -> Result<Removal, ExclusiveError> {
        self.remove_after(seen, OVERWRITE_GRACE)
    }

    /// Removes the file of a live holder if it is unchanged. No delay: other tools have no reason to overwrite it.
    pub(super) fn remove_own(&self, seen: &Seen) -> Result<Removal, ExclusiveError> {
        self.remove_after(seen, Duration::ZERO)
    }

    fn remove_after(&self, seen: &Seen, crossing: Duration) -> Result<Removal, ExclusiveError> {
        // If the change is already visible, the name does not have to disappear for a moment.
        match read(&self.path)? {
            None => return Ok(Removal::Gone),
            Some(now) if now != *seen => return Ok(Removal::Changed),
            Some(_) => {}
        }
        match std::fs::rename(&self.path, &self.aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removal::Gone),
            Err(error) => return Err(failed("remove", &self.path)(error)),
        }
        let unchanged = || read(&self.aside).is_ok_and(|moved| moved.as_ref() == Some(seen));
        if unchanged()
            && (crossing.is_zero() || {
                std::thread::sleep(crossing);
                unchanged()
            })
        {
            remove_if_there(&self.aside)?;
            return Ok(Removal::Removed);
        }
        self.put_back()?;
        Ok(Removal::Changed)
    }

    fn put_back(&self) -> Result<(), ExclusiveError> {
        match std::fs::hard_link(&self.aside, &self.path) {
            Ok(()) => {}
            // A later writer has created the file, and would have overwritten this text as well.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Not a regular file, so not a lock; it is moved back.
            Err(_) => return std::fs::rename(&self.aside, &self.path).map_err(failed("restore", &self.path)),
        }
        remove_if_there(&self.aside)
    }

    fn finish_interrupted_removal(&self) -> Result<(), ExclusiveError> {
        let Ok(moved) = read(&self.aside) else {
            return self.put_back();
        };
        let Some(moved) = moved else {
            return Ok(());
        };
        match ExclusiveLock::from_content(&moved.content) {
            Ok(lock) if lock.liveness() == Liveness::Dead => remove_if_there(&self.aside),
            Ok(_) | Err(_) => self.put_back(),
        }
    }
}

fn remove_if_there(path: &Path) -> Result<(), ExclusiveError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExclusiveError {
    move |source| ExclusiveError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(holder: &str, pid: u32) -> String {
        format!(
            r#"{{"holder":"{holder}","pid":{pid},"hostname":"{}","started_at":"2025-10-25T12:00:00Z"}}"#,
            crate::hostname()
        )
    }

    const NO_PID: u32 = 4_194_305;

    /// Without the guard file, which remains where a directory cannot be locked.
    fn names(dir: &Path) -> Vec<String> {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| name != ".exclusive-lock.guard").collect()
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = lock_path(dir.path());
        std::fs::write(&path, text("dead", NO_PID)).unwrap();
        let seen = read(&path).unwrap().unwrap();
        let fresh = text("fresh", std::process::id());
        std::fs::write(&path, &fresh).unwrap();
        let guarded = GuardedDir::enter(dir.path()).unwrap();
        assert_eq!(guarded.remove_stale(&seen).unwrap(), Removal::Changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), fresh);
    }

    #[test]
    fn the_same_text_in_another_file_is_another_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = lock_path(dir.path());
        std::fs::write(&path, text("dead", NO_PID)).unwrap();
        let seen = read(&path).unwrap().unwrap();
        std::fs::write(dir.path().join("other"), text("dead", NO_PID)).unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        let guarded = GuardedDir::enter(dir.path()).unwrap();
        assert_eq!(guarded.remove_stale(&seen).unwrap(), Removal::Changed);
    }

    #[test]
    fn a_tool_that_had_opened_the_stale_file_and_writes_during_the_removal_keeps_its_lock() {
        use std::io::Write;

        let dir = tempfile::tempdir().unwrap();
        let path = lock_path(dir.path());
        std::fs::write(&path, text("dead", NO_PID)).unwrap();
        let seen = read(&path).unwrap().unwrap();
        let mut late = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let fresh = text("fresh", std::process::id());
        let guarded = GuardedDir::enter(dir.path()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while path.exists() {
                    std::thread::yield_now();
                }
                late.set_len(0).unwrap();
                late.write_all(fresh.as_bytes()).unwrap();
            });
            assert_eq!(guarded.remove_stale(&seen).unwrap(), Removal::Changed);
        });
        assert_eq!(std::fs::read_to_string(&path).unwrap(), fresh);
        // Some systems keep the name of a removed file until it is closed.
        drop(late);
        assert_eq!(names(dir.path()), [EXCLUSIVE_LOCK_FILE]);
    }

    #[test]
    fn an_interrupted_removal_is_completed_or_undone() {
        let aside = format!("{EXCLUSIVE_LOCK_FILE}.aside");
        let alive = text("fresh", std::process::id());
        for (moved, expected) in [(text("dead", NO_PID), None), (alive.clone(), Some(&alive))] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(&aside), &moved).unwrap();
            let seen = read_guarded(dir.path()).unwrap();
            let bytes = seen.map(|seen| seen.content);
            assert_eq!(bytes, expected.map(|text| Content::Bytes(text.clone().into_bytes())));
            assert!(!dir.path().join(&aside).exists());
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(&aside), &alive).unwrap();
        std::fs::write(lock_path(dir.path()), text("later", std::process::id())).unwrap();
        drop(GuardedDir::enter(dir.path()).unwrap());
        assert_eq!(names(dir.path()), [EXCLUSIVE_LOCK_FILE], "the later writer has the name");
    }

    #[test]
    fn the_guard_admits_one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let guarded = GuardedDir::enter(dir.path()).unwrap();
        assert!(!LockFile::guard_of(dir.path()).unwrap().try_lock().unwrap());
        drop(guarded);
        assert!(LockFile::guard_of(dir.path()).unwrap().try_lock().unwrap());
    }
}
