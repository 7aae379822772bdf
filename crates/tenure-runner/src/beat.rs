//! The heartbeat: a thread that renews one lease for as long as work goes on under it.
//!
//! It has a store handle of its own, so nothing that the supervisor does keeps it from beating. It says once, by ending,
//! that the lease is over: because the work itself said its last word, or because the lease is lost.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tenure_core::error::TaskName;
use tenure_core::holder::Caller;
use tenure_core::id::Fence;
use tenure_core::kernel::{self, Beat};
use tenure_core::lease::EndReason;
use tenure_core::store::{Durability, Store, View};
use tenure_core::{Context, Error, Result};

use crate::database::DatabaseFile;
use crate::wait::until_any;

/// After a store that did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// At most so long before a lease ends by itself, its work is ended if it cannot be renewed.
const LEAD: Duration = Duration::from_secs(5);

/// Opens another handle on the project's store.
pub type OpenStore<'a> = &'a (dyn Fn() -> Result<Box<dyn Store>> + Sync);

/// Why the right to work is gone.
#[derive(Debug)]
pub enum Loss {
    /// The store says so: taken over, or taken away.
    Refused(Box<Error>),
    /// The store has not answered for so long that somebody else may soon have it.
    Unreachable(Box<Error>),
    /// The database is gone.
    Deleted(PathBuf),
    /// Another file has the database's name.
    Replaced(PathBuf),
}

impl Loss {
    /// Is there nothing left to work for, in any task?
    pub(crate) fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Deleted(_) | Self::Replaced(_))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{error}"),
            Self::Unreachable(error) => write!(f, "the lease could not be renewed: {error}"),
            Self::Deleted(path) => write!(f, "the database {} was deleted", path.display()),
            Self::Replaced(path) => write!(f, "the database {} was replaced by another file", path.display()),
        }
    }
}

/// How the beating ended.
#[derive(Debug)]
pub(crate) enum Beaten {
    Stopped,
    /// The holder's word on the task was said, so there is nothing left to renew.
    Spoken,
    Lost(Loss),
}

/// What came of one renewal.
#[derive(Debug)]
pub enum Renewal {
    Held,
    Spoken,
    Lost(Loss),
    /// Nobody knows; try again.
    Unclear(Error),
}

/// Who renews what.
#[derive(Debug, Clone, Copy)]
pub struct Tenant<'a> {
    pub ctx: Context<'a>,
    pub task: &'a TaskName,
    pub caller: &'a Caller,
    pub fence: Fence,
}

/// A heartbeat: how often, and what else to look at.
#[derive(Clone, Copy)]
pub(crate) struct Pulse<'a> {
    pub(crate) tenant: Tenant<'a>,
    pub(crate) open: OpenStore<'a>,
    pub(crate) every: Duration,
    pub(crate) ttl: Duration,
    pub(crate) section_ttl: Option<Duration>,
    pub(crate) database: Option<&'a DatabaseFile>,
    pub(crate) doorbell: Option<BorrowedFd<'a>>,
}

impl Pulse<'_> {
    /// Beats until `stop` hangs up, or there is nothing more to beat for. `news` hangs up when this returns.
    pub(crate) fn run(&self, stop: &UnixStream, news: UnixStream) -> Beaten {
        let mut fds = vec![stop.as_fd()];
        fds.extend(self.doorbell);
        let mut store = None;
        let mut held = Instant::now();
        let mut nap = self.every;
        let ended = loop {
            if until_any(&fds, nap).first() == Some(&true) {
                break Beaten::Stopped;
            }
            if let Some(doorbell) = self.doorbell {
                silence(doorbell);
            }
            nap = self.every;
            // The lease counts from when the store wrote it, which was not before we asked.
            let asked = Instant::now();
            match self.renew_through(&mut store) {
                Renewal::Held => held = asked,
                Renewal::Spoken => break Beaten::Spoken,
                Renewal::Lost(loss) => break Beaten::Lost(loss),
                Renewal::Unclear(error) => match self.last_try().checked_sub(held.elapsed()) {
                    Some(left) if !left.is_zero() => nap = self.every.min(RETRY).min(left),
                    _ => break Beaten::Lost(Loss::Unreachable(Box::new(error))),
                },
            }
        };
        drop(news);
        ended
    }

    /// How long after the last beat there is still time to end the work before the lease ends by itself: whoever is
    /// given it then may be on another machine, where nobody can see what still runs here.
    fn last_try(&self) -> Duration {
        self.ttl.saturating_sub((self.ttl / 3).min(LEAD))
    }

    fn renew_through(&self, store: &mut Option<Box<dyn Store>>) -> Renewal {
        if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
            return Renewal::Lost(loss);
        }
        if store.is_none() {
            match (self.open)() {
                Ok(opened) => *store = Some(opened),
                Err(error) => return Renewal::Unclear(error),
            }
        }
        match store {
            Some(store) => self.tenant.renew(store.as_ref(), self.section_ttl),
            None => Renewal::Held,
        }
    }
}

impl Tenant<'_> {
    /// Renews the lease, also one of its own that has expired if nothing was granted since.
    pub fn renew(&self, store: &dyn Store, section_ttl: Option<Duration>) -> Renewal {
        let beat = Beat { revive: true, section_ttl, ..Beat::default() };
        let renewed =
            store.write(Durability::Process, |tx| kernel::renew(tx, &self.ctx, self.caller, self.task, beat));
        match renewed {
            Ok(_) => Renewal::Held,
            Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
                match store.read(|view| has_spoken(view, self.fence)) {
                    Ok(true) => Renewal::Spoken,
                    Ok(false) => Renewal::Lost(Loss::Refused(Box::new(error))),
                    Err(unclear) => Renewal::Unclear(unclear),
                }
            }
            Err(unclear) => Renewal::Unclear(unclear),
        }
    }
}

/// Every min(`interval`, ttl/3), as L7 says.
pub fn rhythm(interval: Duration, ttl: Duration) -> Duration {
    interval.min(ttl / 3)
}

/// Did the holder itself end this lease, by its word on the task?
pub(crate) fn has_spoken(view: &dyn View, fence: Fence) -> Result<bool> {
    let ended = view.lease_by_fence(fence)?.and_then(|lease| lease.ended);
    Ok(matches!(ended, Some((_, EndReason::Completed | EndReason::Released))))
}

/// Forgets the rings that have come.
pub fn silence(doorbell: BorrowedFd<'_>) {
    let mut byte = [0];
    // Bounded, because whoever rings all the time must not keep the heart from beating.
    for _ in 0..1000 {
        if rustix::io::read(doorbell, &mut byte).is_err() {
            return;
        }
    }
}
