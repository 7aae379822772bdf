//! Doorbells: notification channels of the server, received through the store's own connection.
//!
//! A store may have several doorbells, each with a channel; all of them are received through its one connection. A ring is only a
//! hint to run the transaction again. A waiter that misses it polls.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fd::{AsFd, BorrowedFd};

use crate::sys::{LocalDatagrams, local_datagrams};

/// The prefix of every channel.
pub(crate) const CHANNEL: &str = "tenure_";
/// The server refuses to notify a channel with a longer name.
pub(crate) const LONGEST_CHANNEL: usize = 63;

/// The end that a waiter reads. Dropping it removes it from the store's doorbells.
#[derive(Debug)]
pub struct Doorbell {
    receiver: LocalDatagrams,
    channel: String,
    number: u64,
    of: Arc<Doorbells>,
}

impl Doorbell {
    pub fn address(&self) -> String {
        self.channel.clone()
    }

    /// Readable when the doorbell was rung.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Discards the rings that have arrived, so that the next wait blocks.
    pub fn silence(&self) {
        let mut byte = [0];
        while self.receiver.recv(&mut byte).is_ok() {}
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.of.lock().bells.retain(|bell| bell.number != self.number);
    }
}

/// The doorbells of a store.
#[derive(Debug, Default)]
pub(crate) struct Doorbells(Mutex<Bells>);

#[derive(Debug, Default)]
struct Bells {
    bells: Vec<Bell>,
    last: u64,
}

/// The end that rings.
#[derive(Debug)]
struct Bell {
    number: u64,
    channel: String,
    rings: LocalDatagrams,
}

impl Doorbells {
    fn lock(&self) -> MutexGuard<'_, Bells> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A doorbell that rings for every notification on `channel`, and when the connection ends.
    pub(crate) fn add(self: &Arc<Self>, channel: String) -> io::Result<Doorbell> {
        let (rings, receiver) = local_datagrams()?;
        rings.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let mut all = self.lock();
        all.last += 1;
        let number = all.last;
        all.bells.push(Bell { number, channel: channel.clone(), rings });
        Ok(Doorbell { receiver, channel, number, of: Arc::clone(self) })
    }

    /// The channels on which the store has to listen.
    pub(crate) fn channels(&self) -> BTreeSet<String> {
        self.lock().bells.iter().map(|bell| bell.channel.clone()).collect()
    }

    pub(crate) fn ring(&self, channel: &str) {
        self.ring_those(|bell| bell.channel == channel);
    }

    pub(crate) fn ring_all(&self) {
        self.ring_those(|_| true);
    }

    fn ring_those(&self, wanted: impl Fn(&Bell) -> bool) {
        for bell in self.lock().bells.iter().filter(|bell| wanted(bell)) {
            // A full socket means that a ring is already pending.
            drop(bell.rings.send(&[1]));
        }
    }
}
