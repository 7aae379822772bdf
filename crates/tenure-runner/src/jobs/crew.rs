//! What the threads of a job share: which items are held, and whether to go on.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::Error;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tenure_lock::BootTime;

use crate::supervise::Signals;

#[derive(Debug)]
pub(super) struct Crew {
    inner: Mutex<Inner>,
    /// Hung up when everybody is to stop.
    stopped: UnixStream,
}

#[derive(Debug)]
struct Inner {
    /// The job's own lease, for whoever coordinates it.
    job: Option<Lease>,
    held: HashMap<Fence, Held>,
    stop: Option<UnixStream>,
    signal: Option<i32>,
    failure: Option<Error>,
    /// The leases may end soon, so processes are killed without a grace period.
    at_once: bool,
}

/// An item under way.
#[derive(Debug)]
struct Held {
    lease: Lease,
    /// When its grant or its last renewal was asked for.
    asked: BootTime,
    /// Hung up when its worker is to end it.
    _line: UnixStream,
}

impl Crew {
    pub(super) fn new(job: Option<Lease>) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let inner = Inner {
            job,
            held: HashMap::new(),
            stop: Some(stop),
            signal: None,
            failure: None,
            at_once: false,
        };
        Ok(Self { inner: Mutex::new(inner), stopped })
    }

    /// A worker that panicked has left nothing half done in here.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.inner().stop.is_none()
    }

    pub(super) fn stopped(&self) -> BorrowedFd<'_> {
        self.stopped.as_fd()
    }

    /// Everybody ends what it does and goes.
    pub(super) fn stop(&self, signal: i32) {
        let mut inner = self.inner();
        inner.signal.get_or_insert(signal);
        inner.stop = None;
        inner.held.clear();
    }

    /// The job cannot go on. The first reason counts.
    pub(super) fn fail(&self, error: Error) {
        let mut inner = self.inner();
        inner.failure.get_or_insert(error);
        inner.stop = None;
        inner.held.clear();
    }

    /// The job cannot go on, and its leases may end soon.
    pub(super) fn fail_at_once(&self, error: Error) {
        self.inner().at_once = true;
        self.fail(error);
    }

    pub(super) fn into_failure(self) -> Option<Error> {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).failure
    }

    /// From now on the heartbeat renews this item, too. It was asked for at `asked`.
    pub(super) fn hold(&self, lease: &Lease, asked: BootTime) -> io::Result<Line<'_>> {
        let (end, other) = UnixStream::pair()?;
        let mut inner = self.inner();
        // After the stop, the line is hung up from the start.
        if inner.stop.is_some() {
            inner.held.insert(lease.fence, Held { lease: lease.clone(), asked, _line: end });
        }
        drop(inner);
        Ok(Line { crew: self, fence: lease.fence, end: other })
    }

    /// The item is another's by now. Its worker hears of it.
    pub(super) fn lose(&self, fence: Fence) {
        self.inner().held.remove(&fence);
    }

    /// The renewal that was asked for then has kept the item.
    pub(super) fn renewed(&self, fence: Fence, asked: BootTime) {
        if let Some(held) = self.inner().held.get_mut(&fence) {
            held.asked = asked;
        }
    }

    /// The earliest moment from which the lease of an item counts.
    pub(super) fn counted_from(&self) -> Option<BootTime> {
        self.inner().held.values().map(|held| held.asked).min()
    }

    /// What the heartbeat renews.
    pub(super) fn leases(&self) -> (Option<Lease>, Vec<Lease>) {
        let inner = self.inner();
        (inner.job.clone(), inner.held.values().map(|held| held.lease.clone()).collect())
    }
}

/// How a worker hears that its item is to end. Nobody beats for the item any more once this is gone.
#[derive(Debug)]
pub(super) struct Line<'a> {
    crew: &'a Crew,
    fence: Fence,
    end: UnixStream,
}

impl Line<'_> {
    /// The signal by which all were stopped; none if only this item was lost, or the job has failed.
    pub(super) fn signal(&self) -> Option<i32> {
        self.crew.inner().signal
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.crew.is_stopping()
    }

    /// The right to the item is lost, or may be lost soon.
    pub(super) fn must_end_at_once(&self) -> bool {
        let inner = self.crew.inner();
        inner.at_once || inner.stop.is_some()
    }
}

impl AsFd for Line<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Signals for Line<'_> {
    fn take(&self) -> Option<i32> {
        let inner = self.crew.inner();
        if inner.held.contains_key(&self.fence) { None } else { Some(inner.signal.unwrap_or(0)) }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.crew.lose(self.fence);
    }
}
