//! The heartbeat renews leases while work runs under them, and stops the work before a lease can be lost.
//!
//! Each heartbeat has its own thread and store handle, so nothing else in the process delays it. The policy is
//! [`Schedule`]; a [`Renew`] is what is renewed.

mod schedule;
mod task;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::net::RecvFlags;
use tenure_core::store::Store;
use tenure_core::{Error, Result};
use tenure_lock::BootTime;

use crate::database::DatabaseFile;
use crate::wait::until_any_or;

pub use schedule::{HeartbeatStep, Schedule, renew_every, request_patience};
pub use task::RenewTask;
pub(crate) use task::is_finished;

/// Opens another handle on the project's store.
pub type OpenStore<'a> = &'a (dyn Fn() -> Result<Box<dyn Store>> + Sync);

/// Why a lease was lost.
#[derive(Debug)]
pub enum LeaseLoss {
    /// The store refused the renewal: the lease was taken over or ended by force.
    Refused(Box<Error>),
    /// The store has not answered for so long that the lease may soon end.
    Unreachable(Box<Error>),
    /// The database file was deleted.
    Deleted(PathBuf),
    /// The database file was replaced by another file.
    Replaced(PathBuf),
}

impl LeaseLoss {
    /// Whether the whole store is gone, so that no other task can be worked on either.
    pub(crate) fn is_store_gone(&self) -> bool {
        matches!(self, Self::Deleted(_) | Self::Replaced(_))
    }
}

impl fmt::Display for LeaseLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{error}"),
            Self::Unreachable(error) => write!(f, "the lease could not be renewed: {error}"),
            Self::Deleted(path) => write!(f, "the database {} was deleted", path.display()),
            Self::Replaced(path) => write!(f, "the database {} was replaced by another file", path.display()),
        }
    }
}

/// The result of one request.
#[derive(Debug)]
pub enum Renewal {
    Held,
    /// The holder ended the lease, so there is nothing left to renew.
    Finished,
    Lost(LeaseLoss),
    /// The store did not answer; try again.
    Unclear(Error),
}

/// The leases of one heartbeat.
pub trait Renew {
    /// Renews all of them in one transaction. `asked` is the time before the request.
    fn renew(&mut self, store: &dyn Store, asked: BootTime) -> Renewal;

    /// The earliest time at which one of the leases was requested or renewed. `None` if the last renewal renewed all
    /// of them.
    fn counted_from(&self) -> Option<BootTime> {
        None
    }
}

/// How a heartbeat ended.
#[derive(Debug)]
pub(crate) enum HeartbeatEnd {
    Stopped,
    Finished,
    Lost(LeaseLoss),
}

/// The store handle of a heartbeat, kept open between renewals.
pub struct HeartbeatStore<'a> {
    open: OpenStore<'a>,
    database: Option<&'a DatabaseFile>,
    store: Option<Box<dyn Store>>,
}

impl<'a> HeartbeatStore<'a> {
    pub fn new(open: OpenStore<'a>, database: Option<&'a DatabaseFile>) -> Self {
        Self { open, database, store: None }
    }

    pub fn renew(&mut self, renew: &mut dyn Renew, asked: BootTime) -> Renewal {
        if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
            return Renewal::Lost(loss);
        }
        let store = match self.store.take().map_or_else(self.open, Ok) {
            Ok(store) => self.store.insert(store),
            Err(error) => return Renewal::Unclear(error),
        };
        renew.renew(store.as_ref(), asked)
    }
}

impl fmt::Debug for HeartbeatStore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeartbeatStore").field("database", &self.database).finish_non_exhaustive()
    }
}

/// The timing of one heartbeat and the descriptors that it watches between renewals.
#[derive(Clone, Copy)]
pub(crate) struct Heartbeat<'a> {
    pub(crate) open: OpenStore<'a>,
    pub(crate) database: Option<&'a DatabaseFile>,
    /// `runners.heartbeatInterval`.
    pub(crate) interval: Duration,
    pub(crate) ttl: Duration,
    /// Readable or closed: the heartbeat ends.
    pub(crate) stop: Option<BorrowedFd<'a>>,
    /// Readable: a renewal is due.
    pub(crate) doorbell: Option<BorrowedFd<'a>>,
}

impl Heartbeat<'_> {
    /// Renews until it is stopped or nothing is left to renew. The lease was requested at `asked`.
    pub(crate) fn run(&self, asked: BootTime, renew: &mut dyn Renew) -> HeartbeatEnd {
        let mut schedule = Schedule::new(self.interval, self.ttl, asked);
        let mut store = HeartbeatStore::new(self.open, self.database);
        let mut last_error = None;
        loop {
            if let Some(asked) = renew.counted_from() {
                schedule.count_from(asked);
            }
            let now = BootTime::now();
            let step = schedule.next(now);
            let until = if let HeartbeatStep::Wait(until) = step { until } else { now };
            let (stopped, rung) = self.wait(until);
            if stopped {
                return HeartbeatEnd::Stopped;
            }
            if rung {
                schedule.ring(BootTime::now());
            }
            match step {
                HeartbeatStep::Wait(_) => continue,
                HeartbeatStep::Beat => {}
                HeartbeatStep::GiveUp => {
                    tracing::debug!("gave up");
                    let error = last_error.unwrap_or_else(|| Error::store("the store does not answer"));
                    return HeartbeatEnd::Lost(LeaseLoss::Unreachable(Box::new(error)));
                }
            }
            // The store writes the lease after this moment, so the lease ends no earlier than calculated from
            // it.
            let asked = BootTime::now();
            match store.renew(renew, asked) {
                Renewal::Held => {
                    tracing::debug!("renewed");
                    schedule.renewed(asked);
                }
                Renewal::Finished => {
                    tracing::debug!("finished");
                    return HeartbeatEnd::Finished;
                }
                Renewal::Lost(loss) => {
                    tracing::debug!(%loss, "lost");
                    return HeartbeatEnd::Lost(loss);
                }
                Renewal::Unclear(error) => {
                    tracing::debug!(%error, "not renewed");
                    schedule.unanswered(BootTime::now());
                    last_error = Some(error);
                }
            }
        }
    }

    /// Sleeps until that time, or until it is stopped or rung. Returns (stopped, rung).
    fn wait(&self, until: BootTime) -> (bool, bool) {
        let fds: Vec<BorrowedFd<'_>> = self.stop.into_iter().chain(self.doorbell).collect();
        let mut ready = until_any_or(&fds, until).into_iter();
        let stopped = self.stop.is_some() && ready.next() == Some(true);
        let rung = self.doorbell.is_some() && ready.next() == Some(true);
        if let Some(doorbell) = self.doorbell.filter(|_| rung) {
            drain_doorbell(doorbell);
        }
        (stopped, rung)
    }
}

/// Drains the doorbell.
pub fn drain_doorbell(doorbell: BorrowedFd<'_>) {
    let mut byte = [0];
    // Bounded, so that a flood of rings does not delay the heartbeat.
    for _ in 0..1000 {
        if rustix::net::recv(doorbell, &mut byte, RecvFlags::empty()).is_err() {
            return;
        }
    }
}
