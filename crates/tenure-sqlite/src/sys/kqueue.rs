//! Watching a database by kqueue.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use tenure_lock::EventQueue;

use crate::follow::Watched;

/// Short, because it was never tested on a Mac whether unlocking is reported.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// A watch on the gate of a database and on its folder, by kqueue. The database itself is not opened for it: closing it would
/// release the locks that SQLite has on it in this process. If the database is replaced, its folder changes.
#[derive(Debug)]
pub(crate) struct FileWatch {
    queue: EventQueue,
    /// Kept open: a closed file is no longer watched.
    _folder: File,
    gate_path: PathBuf,
    /// `None` until a writer has created it.
    gate: Option<File>,
}

impl FileWatch {
    pub(crate) fn new(watched: Watched) -> io::Result<Self> {
        let Watched { folder: path, database, gate } = watched;
        tracing::trace!(folder = %path.display(), database = %database.display(), "watching by kqueue");
        let (queue, folder) = (EventQueue::new()?, File::open(&path)?);
        queue.watch_folder(&folder)?;
        let mut watch = Self { queue, _folder: folder, gate_path: path.join(gate), gate: None };
        watch.open_gate();
        Ok(watch)
    }

    fn open_gate(&mut self) {
        let gate = File::open(&self.gate_path).ok();
        self.gate = gate.filter(|gate| self.queue.watch_unlocking(gate).is_ok());
    }

    pub(crate) fn clear(&mut self) -> bool {
        if self.queue.take().is_ok_and(|count| count == 0) {
            return false;
        }
        // Another gate may have taken its place. Closing the old one loses its events, but the reader reads now in any case.
        self.open_gate();
        true
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
