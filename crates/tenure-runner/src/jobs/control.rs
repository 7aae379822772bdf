//! State shared by the threads of a job: the held items, and whether to stop.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fd::{AsFd, BorrowedFd};
use tenure_core::Error;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tenure_lock::BootTime;

use crate::supervise::Signals;
use crate::sys::{LocalStream, local_pair};

#[derive(Debug)]
pub(super) struct JobControl {
    inner: Mutex<ControlState>,
    /// Closed when all workers must stop.
    stopped: LocalStream,
}

#[derive(Debug)]
struct ControlState {
    /// The job's lease, in its coordinator.
    job: Option<Lease>,
    held: HashMap<Fence, HeldItem>,
    stop: Option<LocalStream>,
    signal: Option<i32>,
    failure: Option<Error>,
    /// The leases may end soon, so processes are killed without a grace period.
    at_once: bool,
}

/// An item that is being run.
#[derive(Debug)]
struct HeldItem {
    lease: Lease,
    /// When its grant or its last renewal was requested.
    asked: BootTime,
    /// Closed when its worker must end it.
    _open: LocalStream,
}

impl JobControl {
    pub(super) fn new(job: Option<Lease>) -> io::Result<Self> {
        let (stop, stopped) = local_pair()?;
        let inner = ControlState {
            job,
            held: HashMap::new(),
            stop: Some(stop),
            signal: None,
            failure: None,
            at_once: false,
        };
        Ok(Self { inner: Mutex::new(inner), stopped })
    }

    /// Ignores poisoning: a worker that panicked left no half-written state here.
    fn inner(&self) -> MutexGuard<'_, ControlState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.inner().stop.is_none()
    }

    pub(super) fn stopped(&self) -> BorrowedFd<'_> {
        self.stopped.as_fd()
    }

    /// All workers end their items and stop.
    pub(super) fn stop(&self, signal: i32) {
        let mut inner = self.inner();
        inner.signal.get_or_insert(signal);
        inner.stop = None;
        inner.held.clear();
    }

    /// Stops the job with an error. The first error is kept.
    pub(super) fn fail(&self, error: Error) {
        let mut inner = self.inner();
        inner.failure.get_or_insert(error);
        inner.stop = None;
        inner.held.clear();
    }

    /// Stops the job with an error, without a grace period: its leases may end soon.
    pub(super) fn fail_at_once(&self, error: Error) {
        self.inner().at_once = true;
        self.fail(error);
    }

    /// The leases may end soon, so all items are ended without a grace period. The workers continue with
    /// other items.
    pub(super) fn end_items(&self) {
        self.inner().held.clear();
    }

    pub(super) fn into_failure(self) -> Option<Error> {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).failure
    }

    /// Adds an item to those that the heartbeat renews. It was requested at `asked`.
    pub(super) fn hold(&self, lease: &Lease, asked: BootTime) -> io::Result<ItemSignals<'_>> {
        let (end, other) = local_pair()?;
        let mut inner = self.inner();
        // If the job is already stopped, the stream is closed from the start.
        if inner.stop.is_some() {
            inner.held.insert(lease.fence, HeldItem { lease: lease.clone(), asked, _open: end });
        }
        drop(inner);
        Ok(ItemSignals { control: self, fence: lease.fence, end: other })
    }

    /// The item was lost; its worker is notified.
    pub(super) fn lose(&self, fence: Fence) {
        self.inner().held.remove(&fence);
    }

    /// The item was renewed by a request at `asked`.
    pub(super) fn renewed(&self, fence: Fence, asked: BootTime) {
        if let Some(held) = self.inner().held.get_mut(&fence) {
            held.asked = asked;
        }
    }

    /// The earliest time from which the lease of an item counts.
    pub(super) fn counted_from(&self) -> Option<BootTime> {
        self.inner().held.values().map(|held| held.asked).min()
    }

    /// The leases that the heartbeat renews.
    pub(super) fn leases(&self) -> (Option<Lease>, Vec<Lease>) {
        let inner = self.inner();
        (inner.job.clone(), inner.held.values().map(|held| held.lease.clone()).collect())
    }
}

/// Tells a worker that its item must end. The item is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct ItemSignals<'a> {
    control: &'a JobControl,
    fence: Fence,
    end: LocalStream,
}

impl ItemSignals<'_> {
    /// The signal that stopped all workers; None if only this item was lost, or the job has failed.
    pub(super) fn signal(&self) -> Option<i32> {
        self.control.inner().signal
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.control.is_stopping()
    }

    /// The item's lease is lost, or may be lost soon.
    pub(super) fn must_end_at_once(&self) -> bool {
        let inner = self.control.inner();
        inner.at_once || inner.stop.is_some()
    }
}

impl Signals for ItemSignals<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    fn take(&self) -> Option<i32> {
        let inner = self.control.inner();
        if inner.held.contains_key(&self.fence) { None } else { Some(inner.signal.unwrap_or(0)) }
    }
}

impl Drop for ItemSignals<'_> {
    fn drop(&mut self) {
        self.control.lose(self.fence);
    }
}
