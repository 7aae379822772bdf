//! The keeper: renews what connected clients hold, on a thread and a store handle of its own.
//!
//! It beats every min(`heartbeatInterval`, ttl/3) for each lease, at once when its doorbell rings (somebody forced a lease
//! away), and tells the session of every lease that it lost. Whatever is busy elsewhere never keeps it from beating.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::Context;
use tenure_core::error::TaskName;
use tenure_core::holder::Caller;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tenure_core::store::Store;
use tenure_runner::{DatabaseFile, Loss, OpenStore, Renewal, Tenant, rhythm, silence, until_any};

use crate::session::{Lost, Session, lock};

/// Nothing happens by itself in this time; a poll needs a limit.
const LONG: Duration = Duration::from_hours(1);
/// After a store that did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// What the keeper's thread works with.
#[derive(Clone, Copy)]
pub struct Care<'a> {
    pub ctx: Context<'a>,
    pub open: OpenStore<'a>,
    /// `runners.heartbeatInterval`.
    pub interval: Duration,
    pub database: Option<&'a DatabaseFile>,
    pub doorbell: Option<BorrowedFd<'a>>,
}

impl std::fmt::Debug for Care<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Care").field("interval", &self.interval).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Holding {
    session: Arc<Session>,
    task: TaskName,
    lease: Lease,
    due: Instant,
    /// When it was last known to be held.
    held: Instant,
}

/// What is renewed, shared between the desk and the keeper's thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    holdings: Mutex<Vec<Holding>>,
    interval: Duration,
    wake: UnixStream,
}

impl Keeper {
    /// The keeper, and the end that its thread listens at.
    pub(crate) fn new(interval: Duration) -> std::io::Result<(Arc<Self>, UnixStream)> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok((Arc::new(Self { holdings: Mutex::default(), interval, wake }), woken))
    }

    /// Renews this from now on, under its present ttl.
    pub(crate) fn keep(&self, session: &Arc<Session>, task: TaskName, lease: Lease) {
        let now = Instant::now();
        let mut holdings = lock(&self.holdings);
        holdings.retain(|holding| holding.lease.fence != lease.fence);
        let due = now + rhythm(self.interval, lease.ttl);
        holdings.push(Holding { session: Arc::clone(session), task, lease, due, held: now });
        drop(holdings);
        self.ring();
    }

    pub(crate) fn forget(&self, fence: Fence) {
        lock(&self.holdings).retain(|holding| holding.lease.fence != fence);
    }

    /// Stops renewing for a session: what was renewed.
    pub(crate) fn take(&self, session: &Session) -> Vec<Lease> {
        let mut taken = Vec::new();
        lock(&self.holdings).retain(|holding| {
            let its = holding.session.number() == session.number();
            if its {
                taken.push(holding.lease.clone());
            }
            !its
        });
        taken
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
    }

    fn ring(&self) {
        // A full pipe is a ring, too.
        let _ = (&self.wake).write(&[1]);
    }

    /// The thread.
    pub(crate) fn run(&self, woken: &UnixStream, care: Care<'_>) {
        let mut store = None;
        let mut fds = vec![woken.as_fd()];
        fds.extend(care.doorbell);
        loop {
            let now = Instant::now();
            let next = lock(&self.holdings).iter().map(|holding| holding.due).min();
            let nap = next.map_or(LONG, |due| due.saturating_duration_since(now));
            let spoken = until_any(&fds, nap);
            if spoken.first() == Some(&true) && has_ended(woken) {
                return;
            }
            let rung = spoken.get(1) == Some(&true);
            if let Some(doorbell) = care.doorbell.filter(|_| rung) {
                silence(doorbell);
            }
            let now = Instant::now();
            let due: Vec<Holding> =
                lock(&self.holdings).iter().filter(|holding| rung || holding.due <= now).cloned().collect();
            for holding in due {
                self.beat(&mut store, &care, holding);
            }
        }
    }

    fn beat(&self, store: &mut Option<Box<dyn Store>>, care: &Care<'_>, holding: Holding) {
        let fence = holding.lease.fence;
        match renew(store, care, &holding) {
            Renewal::Held => {
                self.put_off(fence, rhythm(self.interval, holding.lease.ttl), true);
            }
            // Its holder has said its last word, here or elsewhere.
            Renewal::Spoken => self.forget(fence),
            Renewal::Unclear(error) if holding.held.elapsed() >= holding.lease.ttl => {
                self.lose(&holding, &Loss::Unreachable(Box::new(error)));
            }
            Renewal::Unclear(_) => {
                self.put_off(fence, rhythm(self.interval, holding.lease.ttl).min(RETRY), false);
            }
            Renewal::Lost(loss) => self.lose(&holding, &loss),
        }
    }

    fn put_off(&self, fence: Fence, by: Duration, held: bool) {
        let now = Instant::now();
        let mut holdings = lock(&self.holdings);
        for holding in holdings.iter_mut().filter(|holding| holding.lease.fence == fence) {
            holding.due = now + by;
            if held {
                holding.held = now;
            }
        }
    }

    fn lose(&self, holding: &Holding, loss: &Loss) {
        let fence = holding.lease.fence;
        // Whoever was just told by its own call, or is gone, need not hear it again.
        let known = lock(&self.holdings).iter().any(|holding| holding.lease.fence == fence);
        self.forget(fence);
        if known {
            let message = loss_message(loss, &holding.task);
            holding.session.note_loss(Lost::new(holding.task.clone(), fence, message));
        }
    }
}

fn loss_message(loss: &Loss, task: &TaskName) -> String {
    match loss {
        Loss::Refused(error) => match error.as_ref() {
            tenure_core::Error::LeaseLost(_) => error.to_string(),
            _ => format!("you no longer hold {}: {error}", task.key),
        },
        _ => format!("you no longer hold {}: {loss}", task.key),
    }
}

fn renew(store: &mut Option<Box<dyn Store>>, care: &Care<'_>, holding: &Holding) -> Renewal {
    if let Some(loss) = care.database.and_then(DatabaseFile::loss) {
        return Renewal::Lost(loss);
    }
    if store.is_none() {
        match (care.open)() {
            Ok(opened) => *store = Some(opened),
            Err(error) => return Renewal::Unclear(error),
        }
    }
    let Some(store) = store else { return Renewal::Held };
    let lease = &holding.lease;
    let mut caller = Caller::new(lease.holder.clone()).with_fence(Some(lease.fence));
    caller.process.clone_from(&lease.process);
    let tenant = Tenant { ctx: care.ctx, task: &holding.task, caller: &caller, fence: lease.fence };
    tenant.renew(store.as_ref(), None)
}

fn has_ended(mut woken: &UnixStream) -> bool {
    let mut rings = [0; 64];
    loop {
        match woken.read(&mut rings) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
