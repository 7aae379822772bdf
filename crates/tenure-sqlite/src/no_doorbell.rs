//! Systems without Unix sockets: no process can be rung, so waiting processes poll.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use rustix::fd::BorrowedFd;

/// Never created.
#[derive(Debug)]
pub struct Doorbell(Infallible);

impl Doorbell {
    /// Always fails; the caller polls instead.
    pub fn bind(_folder: &Path, _name: &str) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn address(&self) -> String {
        match self.0 {}
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn silence(&self) {
        match self.0 {}
    }
}

/// There are no sockets to remove.
pub fn sweep_doorbells(_folder: &Path, _prefix: &str, _remove: bool) -> usize {
    0
}

pub(crate) fn ring_all(_doorbells: &[String]) {}
