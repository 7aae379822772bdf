//! Waits until any process has changed a project's store, without polling it.
//!
//! Guaranteed: a change that is committed after [`Follower::begin_read`] ends the next wait. A wait may also end without a change.
//! Where changes cannot be reported, the store is polled.
//!
//! A [`Follower::new`] keeps its connection to a server. A [`Follower::waiter`] counts as a listener (`store.maxListeners`): if enough
//! processes listen already, it closes its connection while it waits, and polls.

use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use tenure_core::Result;
use tenure_core::store::StoreHint;
use tenure_runner::until_any;
use tenure_sqlite::Watch;

use crate::store::Backend;

/// How often a store that does not report changes is read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often a store on a server is read without a notification, in case one was lost.
const RECHECK: Duration = Duration::from_mins(1);

/// A reader of one store.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    store: &'a Backend,
    changes: Changes,
    pause: Duration,
    /// How often the server is polled while it does not notify this reader.
    server_poll: Duration,
    /// Whether the reader gives up its connection while enough others listen.
    yields_connection: bool,
    begun: Instant,
    /// When to read next without a reported change.
    recheck: Duration,
}

/// How changes are reported.
#[derive(Debug)]
enum Changes {
    File(Watch),
    Server(tenure_postgres::Doorbell),
    Unreported,
}

impl Changes {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(watch) => Some(watch.fd()),
            Self::Server(doorbell) => Some(doorbell.fd()),
            Self::Unreported => None,
        }
    }

    /// Discards pending notifications. Returns true if one of them concerns the store.
    fn clear(&mut self) -> bool {
        match self {
            Self::File(watch) => watch.clear(),
            Self::Server(doorbell) => {
                doorbell.silence();
                true
            }
            Self::Unreported => false,
        }
    }
}

/// Why a wait has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Woken {
    /// The store may have changed.
    pub(crate) changed: bool,
    /// Which of the other descriptors are ready.
    pub(crate) ready: Vec<bool>,
}

impl<'a> Follower<'a> {
    /// `pause` is the shortest time between two reads.
    pub(crate) fn new(store: &'a Backend, pause: Duration) -> Self {
        let changes = match store {
            Backend::Sqlite(store) => store.watch().map(Changes::File),
            Backend::Postgres(store) => store.follow().map(Changes::Server),
        };
        let changes = changes.unwrap_or(Changes::Unreported);
        Self {
            store,
            changes,
            pause,
            server_poll: POLL_INTERVAL,
            yields_connection: false,
            begun: Instant::now(),
            recheck: Duration::ZERO,
        }
    }

    /// A reader of which there may be many, and which polls a server every `server_poll` if it is not among its listeners.
    pub(crate) fn waiter(store: &'a Backend, pause: Duration, server_poll: Duration) -> Self {
        Self { server_poll, yields_connection: true, ..Self::new(store, pause) }
    }

    /// Must be called before each read.
    pub(crate) fn begin_read(&mut self) -> Result<()> {
        self.begun = Instant::now();
        self.changes.clear();
        self.recheck = match (&self.changes, self.store) {
            (Changes::Server(_), Backend::Postgres(store)) if !store.gave_up_listening() => {
                store.ask_for_notification()?.unwrap_or(RECHECK)
            }
            (_, Backend::Postgres(_)) => self.server_poll,
            (Changes::File(_), _) => Watch::RECHECK,
            _ => POLL_INTERVAL,
        };
        Ok(())
    }

    /// Waits until the store may have changed, one of `others` is ready, or `limit` has passed.
    pub(crate) fn wait(&mut self, others: &[BorrowedFd<'_>], limit: Option<Duration>) -> Woken {
        let start = Instant::now();
        if self.yields_connection {
            self.store.hint(StoreHint::Sleeps);
            if let Backend::Postgres(store) = self.store
                && store.gave_up_listening()
            {
                self.recheck = self.server_poll;
            }
        }
        let due = self.begun + self.recheck.max(self.pause);
        loop {
            let now = Instant::now();
            let limit_left = limit.map(|limit| limit.saturating_sub(now - start));
            let pause_left = self.pause.saturating_sub(now - self.begun);
            let due_left = due.saturating_duration_since(now);
            if due_left.is_zero() {
                return Woken { changed: true, ready: vec![false; others.len()] };
            }
            if limit_left.is_some_and(|left| left.is_zero()) {
                return Woken { changed: false, ready: vec![false; others.len()] };
            }
            let mut fds = others.to_vec();
            let mut nap = limit_left.map_or(due_left, |left| left.min(due_left));
            if pause_left.is_zero() {
                fds.extend(self.changes.fd());
            } else {
                nap = nap.min(pause_left);
            }
            let mut ready = until_any(&fds, nap);
            let reported = ready.split_off(others.len()).contains(&true);
            let changed = reported && self.changes.clear();
            if changed || ready.contains(&true) {
                return Woken { changed, ready };
            }
        }
    }
}
