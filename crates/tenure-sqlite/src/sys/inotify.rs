//! Watching a database by inotify.

use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::follow::Watched;

pub(crate) const RECHECK: Duration = Duration::from_mins(1);

/// A watch on the folder of a database, by inotify. The folder is watched rather than its files, which may be replaced.
#[derive(Debug)]
pub(crate) struct FileWatch {
    queue: OwnedFd,
    watched: Watched,
}

impl FileWatch {
    pub(crate) fn new(watched: Watched) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let files = WatchFlags::CLOSE_WRITE | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        let folder = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        inotify::add_watch(&queue, &watched.folder, files | folder)?;
        Ok(Self { queue, watched })
    }

    pub(crate) fn clear(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut changed = false;
        loop {
            match events.next() {
                Ok(event) => changed |= self.watched.concerns(event.events(), event.file_name()),
                Err(rustix::io::Errno::AGAIN) => return changed,
                // If it is not known whether something has changed, the reader has to read.
                Err(_) => return true,
            }
        }
    }
}

impl Watched {
    fn concerns(&self, events: ReadFlags, name: Option<&CStr>) -> bool {
        // The event is about the folder itself, or says that others were lost.
        let Some(name) = name else { return true };
        let name = OsStr::from_bytes(name.to_bytes());
        (events.contains(ReadFlags::CLOSE_WRITE) && name == self.gate)
            || (!events.contains(ReadFlags::CLOSE_WRITE) && name == self.database)
    }
}

impl FileWatch {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tenure_core::SystemClock;
    use tenure_core::event::{EventKind, NewEvent};
    use tenure_core::store::{Durability, EventFilter, Store};

    use crate::Watch;
    use crate::connection::{OpenOptions, SqliteStore};

    fn open(path: &Path) -> SqliteStore {
        SqliteStore::create(path, OpenOptions::new(Arc::new(SystemClock))).unwrap()
    }

    fn append(store: &dyn Store) {
        store.write(Durability::Process, |tx| tx.append(NewEvent::new(EventKind::AgentJoined, "a"))).unwrap();
    }

    fn count(store: &dyn Store) -> u64 {
        store.read(|view| view.count_events(&EventFilter { limit: 1, ..EventFilter::default() })).unwrap()
    }

    /// Waits for a report, at most this many seconds. Changes of other files wake the watch, but are not reports.
    fn reported(watch: &mut Watch, seconds: u64) -> bool {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            let limit = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).unwrap();
            let mut fds = [PollFd::from_borrowed_fd(watch.fd(), PollFlags::IN)];
            if poll(&mut fds, Some(&limit)).unwrap() == 0 {
                return false;
            }
            if watch.clear() {
                return true;
            }
        }
    }

    #[test]
    fn every_commit_is_reported_after_it_can_be_read() {
        const EACH: u64 = 60;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = open(&path);
        let mut watch = store.watch().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        // Each closes its store, which moves the log into the database and empties it.
                        append(&open(&path));
                    }
                });
            }
            // A reader that only reads when it was woken sees everything in the end.
            while count(&store) < 2 * EACH {
                assert!(reported(&mut watch, 30), "a commit was not reported");
            }
        });
    }

    #[test]
    fn a_removed_log_and_a_replaced_database_are_reported_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let mut watch = open(&path).watch().unwrap();
        watch.clear();
        std::fs::write(folder.path().join("config.yaml"), "a: 1").unwrap();
        assert!(!reported(&mut watch, 0));
        for suffix in ["-wal", "-shm"] {
            drop(std::fs::remove_file(folder.path().join(format!("tenure.db{suffix}"))));
        }
        append(&open(&path));
        assert!(reported(&mut watch, 30));
        watch.clear();
        std::fs::copy(&path, folder.path().join("other")).unwrap();
        assert!(!reported(&mut watch, 0));
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(reported(&mut watch, 30));
    }

    #[test]
    fn the_removal_of_the_folder_is_reported_and_without_a_folder_there_is_no_watch() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let store = open(&inner.join("tenure.db"));
        let mut watch = store.watch().unwrap();
        std::fs::remove_dir_all(&inner).unwrap();
        assert!(reported(&mut watch, 30));
        assert!(store.watch().is_none());
    }
}
