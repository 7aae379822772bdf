//! Doorbells: notification channels of the server, received through the store's own connection.
//!
//! A ring is only a hint to run the transaction again. A waiter that misses it polls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// The prefix of every channel.
pub(crate) const CHANNEL: &str = "tenure_";
/// The server refuses to notify a channel with a longer name.
pub(crate) const LONGEST_CHANNEL: usize = 63;

/// The end that a waiter reads.
#[derive(Debug)]
pub struct Doorbell {
    heard: UnixDatagram,
    channel: String,
}

impl Doorbell {
    pub(crate) fn new(channel: String) -> io::Result<(Self, Bell)> {
        let (rings, heard) = UnixDatagram::pair()?;
        rings.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok((Self { heard, channel }, Bell(rings)))
    }

    pub fn address(&self) -> String {
        self.channel.clone()
    }

    /// Discards the rings that have arrived, so that the next wait blocks.
    pub fn silence(&self) {
        let mut byte = [0];
        while self.heard.recv(&mut byte).is_ok() {}
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}

/// The end that the reading thread writes.
#[derive(Debug)]
pub(crate) struct Bell(UnixDatagram);

impl Bell {
    pub(crate) fn ring(&self) {
        // A full socket means that a ring is already pending. A waiter that has ended needs none.
        drop(self.0.send(&[1]));
    }

    pub(crate) fn another(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}
