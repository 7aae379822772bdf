//! Doorbells: notification channels of the server, received through the store's own connection.
//!
//! A ring is only a hint to run the transaction again. A waiter that misses it polls.

use std::io;

use rustix::fd::{AsFd, BorrowedFd};

use crate::sys::{LocalDatagrams, local_datagrams};

/// The prefix of every channel.
pub(crate) const CHANNEL: &str = "tenure_";
/// The server refuses to notify a channel with a longer name.
pub(crate) const LONGEST_CHANNEL: usize = 63;

/// The end that a waiter reads.
#[derive(Debug)]
pub struct Doorbell {
    heard: LocalDatagrams,
    channel: String,
}

impl Doorbell {
    pub(crate) fn new(channel: String) -> io::Result<(Self, Bell)> {
        let (rings, heard) = local_datagrams()?;
        rings.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok((Self { heard, channel }, Bell(rings)))
    }

    pub fn address(&self) -> String {
        self.channel.clone()
    }

    /// Readable when the doorbell was rung.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }

    /// Discards the rings that have arrived, so that the next wait blocks.
    pub fn silence(&self) {
        let mut byte = [0];
        while self.heard.recv(&mut byte).is_ok() {}
    }
}

/// The end that the reading thread writes.
#[derive(Debug)]
pub(crate) struct Bell(LocalDatagrams);

impl Bell {
    pub(crate) fn ring(&self) {
        // A full socket means that a ring is already pending. A waiter that has ended needs none.
        drop(self.0.send(&[1]));
    }

    pub(crate) fn another(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}
