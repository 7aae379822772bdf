//! A system on which a database is not watched.

use std::io;
use std::time::Duration;

use crate::follow::Watched;

pub(crate) const RECHECK: Duration = Duration::from_mins(1);

/// There is none; readers poll.
#[derive(Debug)]
pub(crate) enum FileWatch {}

impl FileWatch {
    pub(crate) fn new(_watched: Watched) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn clear(&mut self) -> bool {
        match *self {}
    }
}
