//! A system on which a database is not watched.

use std::io;
use std::time::Duration;

use rustix::fd::BorrowedFd;

use crate::follow::Watched;

pub(crate) const RECHECK: Duration = Duration::from_mins(1);

/// There is none; readers poll.
#[derive(Debug)]
pub(crate) enum FileWatch {}

impl FileWatch {
    pub(crate) fn new(watched: Watched) -> io::Result<Self> {
        let Watched { folder, database, gate } = watched;
        let files = format!("{} and {} in {}", database.display(), gate.display(), folder.display());
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("this system cannot watch {files}")))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    pub(crate) fn clear(&mut self) -> bool {
        match *self {}
    }
}
