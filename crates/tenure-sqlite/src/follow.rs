//! Following a database file: waking a reader after every commit, without a query and without any work by the writers.
//!
//! The write-ahead log itself is the wrong file to watch: it is written before the commit can be read, so a reader that was woken
//! by its last change could find nothing and would not be woken again. Every writer passes the gate, and leaves it after its
//! commit, so the watch is for the end of a pass through the gate.
//!
//! Guaranteed: a wake-up after each commit, also by a process that was killed, after a checkpoint, and after the log was removed
//! and made again; and one when the file is replaced or removed. Not guaranteed: that something has changed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::BorrowedFd;

use crate::connection::SqliteStore;
use crate::gate::Gate;
use crate::sys;

/// A watch on the files of a database.
#[derive(Debug)]
pub struct Watch(pub(crate) sys::FileWatch);

/// The files that are watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) folder: PathBuf,
    pub(crate) database: OsString,
    pub(crate) gate: OsString,
}

impl Watched {
    fn of(database: &Path) -> Option<Self> {
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            database: database.file_name()?.to_owned(),
            gate: Gate::beside(database).name()?.to_owned(),
        })
    }
}

impl Watch {
    /// How often a reader reads without a wake-up, in case the system has lost one.
    pub const RECHECK: Duration = sys::RECHECK;

    /// Readable when a file has changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    /// Forgets the changes so far. True if one of them concerns the database.
    pub fn clear(&mut self) -> bool {
        self.0.clear()
    }
}

impl SqliteStore {
    /// Starts a watch. `None` if the system has no watches or refuses one, and on a FUSE file system, which need not report the
    /// changes of other machines. Then a reader has to poll.
    pub fn watch(&self) -> Option<Watch> {
        if self.is_on_fuse() {
            return None;
        }
        sys::FileWatch::new(Watched::of(self.path())?).ok().map(Watch)
    }
}
