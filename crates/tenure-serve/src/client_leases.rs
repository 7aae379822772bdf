//! The leases of connected clients, renewed on a separate thread with a separate store handle.
//!
//! Each lease has its own schedule, as with every other heartbeat. An eviction rings the doorbell, upon which all
//! leases are checked at once. The loss of a lease is reported in the answer to the session's next call. A lease that
//! could not be renewed in time is reported in the same way, before it can end.

use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fd::AsFd;
use tenure_core::error::TaskName;
use tenure_core::holder::Caller;
use tenure_core::id::Fence;
use tenure_core::lease::Lease;
use tenure_core::{Context, Error};
use tenure_lock::BootTime;
use tenure_runner::{
    Execution, HeartbeatStep, HeartbeatStore, LeaseLoss, LocalStream, RenewTask, Renewal, Schedule,
    drain_doorbell, local_pair, until_any, until_any_or,
};

use crate::session::{Lost, Session, lock};

/// The timeout of a poll while no lease is scheduled.
const LONG: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
struct ClientLease {
    session: Arc<Session>,
    task: TaskName,
    lease: Lease,
    schedule: Schedule,
    last_error: Option<String>,
}

/// All leases that are renewed, shared between the request handler and the heartbeat thread.
#[derive(Debug)]
pub(crate) struct ClientLeases {
    leases: Mutex<Vec<ClientLease>>,
    interval: Duration,
    wake: LocalStream,
}

impl ClientLeases {
    /// An empty set of leases, and the stream that wakes the thread.
    pub(crate) fn new(interval: Duration) -> std::io::Result<(Arc<Self>, LocalStream)> {
        let (wake, woken) = local_pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok((Arc::new(Self { leases: Mutex::default(), interval, wake }), woken))
    }

    /// Renews this lease from now on. The client's request for it was sent at `asked`.
    ///
    /// If the client held the lease before (`reacquired`), that request may not have renewed it. Then the time until it
    /// is given up still counts from its last renewal, and its next beat is due at once.
    pub(crate) fn keep(
        &self,
        session: &Arc<Session>,
        task: TaskName,
        lease: Lease,
        reacquired: bool,
        asked: BootTime,
    ) {
        let mut schedule = Schedule::new(self.interval, lease.ttl, asked);
        let mut leases = lock(&self.leases);
        if reacquired {
            let before = leases.iter().find(|kept| kept.lease.fence == lease.fence);
            schedule.count_from(before.map_or(asked, |kept| kept.schedule.counted_from()));
            schedule.ring(asked);
        }
        leases.retain(|kept| kept.lease.fence != lease.fence);
        leases.push(ClientLease { session: Arc::clone(session), task, lease, schedule, last_error: None });
        drop(leases);
        // If the pipe is full, the thread is woken anyway.
        let _ = (&self.wake).write(&[1]);
    }

    pub(crate) fn forget(&self, fence: Fence) {
        lock(&self.leases).retain(|kept| kept.lease.fence != fence);
    }

    /// Stops the renewals for a session. Returns the leases that were renewed for it.
    pub(crate) fn take(&self, session: &Session) -> Vec<Lease> {
        let mut taken = Vec::new();
        lock(&self.leases).retain(|kept| {
            let its = kept.session.number() == session.number();
            if its {
                taken.push(kept.lease.clone());
            }
            !its
        });
        taken
    }

    /// Makes the thread end.
    pub(crate) fn stop(&self) {
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
    }

    /// The body of the thread.
    pub(crate) fn run(&self, woken: &LocalStream, exec: Execution<'_>) {
        let mut store = HeartbeatStore::new(exec.open_store, exec.database);
        let doorbell = exec.doorbell.map(|doorbell| doorbell.fd);
        let mut fds = vec![woken.as_fd()];
        fds.extend(doorbell);
        loop {
            let ready = match self.next(BootTime::now()) {
                Some(at) => until_any_or(&fds, at),
                None => until_any(&fds, LONG),
            };
            if ready.first() == Some(&true) && has_ended(woken) {
                return;
            }
            if let Some(doorbell) = doorbell.filter(|_| ready.get(1) == Some(&true)) {
                drain_doorbell(doorbell);
                let now = BootTime::now();
                lock(&self.leases).iter_mut().for_each(|kept| kept.schedule.ring(now));
            }
            self.pass(&mut store, exec.ctx, &BootTime::now);
        }
    }

    /// The earliest time at which a lease has to be renewed or given up.
    fn next(&self, now: BootTime) -> Option<BootTime> {
        let at = |kept: &ClientLease| match kept.schedule.next(now) {
            HeartbeatStep::Wait(at) => at,
            HeartbeatStep::Beat | HeartbeatStep::GiveUp => now,
        };
        lock(&self.leases).iter().map(at).min()
    }

    /// Renews the leases that are due, and gives up those that could not be renewed in time.
    fn pass(&self, store: &mut HeartbeatStore<'_>, ctx: Context<'_>, clock: &dyn Fn() -> BootTime) {
        let fences: Vec<Fence> = lock(&self.leases).iter().map(|kept| kept.lease.fence).collect();
        // Once the store has failed to answer, it is not asked for the other leases in this pass: waiting for each of
        // them could take longer than they last.
        let mut away = None;
        for fence in fences {
            let Some(kept) = lock(&self.leases).iter().find(|kept| kept.lease.fence == fence).cloned() else {
                continue;
            };
            match (kept.schedule.next(clock()), &away) {
                (HeartbeatStep::Wait(_), _) => {}
                (HeartbeatStep::Beat, None) => away = self.beat(store, ctx, &kept, clock),
                (HeartbeatStep::Beat, Some(error)) => self.note_unanswered(fence, error, clock()),
                (HeartbeatStep::GiveUp, _) => self.lose(&kept, &unreachable(kept.last_error.as_deref())),
            }
        }
    }

    /// Renews one lease. Returns the error if the store did not answer.
    fn beat(
        &self,
        store: &mut HeartbeatStore<'_>,
        ctx: Context<'_>,
        kept: &ClientLease,
        clock: &dyn Fn() -> BootTime,
    ) -> Option<String> {
        let (lease, task) = (&kept.lease, &kept.task);
        let mut caller = Caller::holding(lease);
        caller.process.clone_from(&lease.process);
        let mut renew = RenewTask { ctx, task, caller: &caller, lease, section_ttl: None };
        let asked = clock();
        match store.renew(&mut renew, asked) {
            Renewal::Held => {
                let mut leases = lock(&self.leases);
                let renewed = leases.iter_mut().filter(|kept| kept.lease.fence == lease.fence);
                renewed.for_each(|kept| kept.schedule.renewed(asked));
            }
            // Its holder has finished it, through this connection or another process.
            Renewal::Finished => self.forget(lease.fence),
            Renewal::Lost(loss) => self.lose(kept, &loss),
            Renewal::Unclear(error) => {
                let error = error.to_string();
                self.note_unanswered(lease.fence, &error, clock());
                return Some(error);
            }
        }
        None
    }

    fn note_unanswered(&self, fence: Fence, error: &str, now: BootTime) {
        for kept in lock(&self.leases).iter_mut().filter(|kept| kept.lease.fence == fence) {
            kept.schedule.unanswered(now);
            kept.last_error = Some(error.to_owned());
        }
    }

    fn lose(&self, kept: &ClientLease, loss: &LeaseLoss) {
        let fence = kept.lease.fence;
        // If the lease was removed meanwhile, the client has ended it or has disconnected, so no loss is reported.
        let known = lock(&self.leases).iter().any(|kept| kept.lease.fence == fence);
        self.forget(fence);
        if known {
            let message = loss_message(loss, &kept.task);
            kept.session.note_loss(Lost::new(kept.task.clone(), fence, message));
        }
    }
}

fn unreachable(error: Option<&str>) -> LeaseLoss {
    LeaseLoss::Unreachable(Box::new(Error::store(error.unwrap_or("the store does not answer"))))
}

fn loss_message(loss: &LeaseLoss, task: &TaskName) -> String {
    match loss {
        LeaseLoss::Refused(error) => match error.as_ref() {
            Error::LeaseLost(_) => error.to_string(),
            _ => format!("you no longer hold {}: {error}", task.key),
        },
        _ => format!("you no longer hold {}: {loss}", task.key),
    }
}

fn has_ended(mut woken: &LocalStream) -> bool {
    let mut rings = [0; 64];
    loop {
        match woken.read(&mut rings) {
            Ok(0) => return true,
            Ok(_) => {}
            // `WouldBlock` means that there is nothing more to read yet. Any other error means that the other
            // end was closed.
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tenure_core::store::Store;
    use tenure_testkit::fixture::{Fixture, TTL};

    use super::*;
    use crate::session::Roster;

    /// A client that holds tasks, and a store that does not answer.
    struct Scene {
        fixture: Fixture,
        leases: Arc<ClientLeases>,
        session: Arc<Session>,
        asked: AtomicUsize,
    }

    /// The time `seconds` after the grant of leases with a ttl of a minute.
    fn after(seconds: u64) -> BootTime {
        BootTime::after_boot(Duration::from_secs(1000 + seconds))
    }

    impl Scene {
        fn holding(keys: &[&str]) -> Self {
            let fixture = Fixture::memory();
            let (leases, _woken) = ClientLeases::new(TTL).unwrap();
            let session = Roster::default().enter(1);
            for key in keys {
                fixture.add_task(key);
                let lease = fixture.claim(&fixture.bare("ann"), key).unwrap().lease;
                leases.keep(&session, fixture.name(key), lease, false, after(0));
            }
            Self { fixture, leases, session, asked: AtomicUsize::new(0) }
        }

        /// Runs all passes that are due at that time.
        fn pass(&self, seconds: u64) {
            let (now, asked) = (after(seconds), &self.asked);
            let open = || -> tenure_core::Result<Box<dyn Store>> {
                asked.fetch_add(1, Ordering::SeqCst);
                Err(Error::store("the server is away"))
            };
            let mut store = HeartbeatStore::new(&open, None);
            while self.leases.next(now).is_some_and(|at| at <= now) {
                self.leases.pass(&mut store, self.fixture.context(), &|| now);
            }
        }

        fn notices(&self) -> Vec<String> {
            self.session.take_losses().iter().map(Lost::sentence).collect()
        }
    }

    #[test]
    fn a_client_is_told_before_a_lease_can_end_that_could_not_be_renewed() {
        let scene = Scene::holding(&["A"]);
        scene.pass(20);
        scene.pass(54);
        assert!(scene.notices().is_empty(), "an unanswered request is no proof of loss");
        scene.pass(55);
        let notices = scene.notices();
        let expected = "LEASE_LOST: You no longer hold A: the lease could not be renewed: the server is away";
        assert!(notices.len() == 1 && notices[0].starts_with(expected), "{notices:?}");
        scene.pass(60);
        assert!(scene.notices().is_empty(), "once");
    }

    #[test]
    fn claiming_again_what_one_holds_does_not_put_off_the_moment_of_giving_up() {
        let scene = Scene::holding(&["A"]);
        let lease = scene.fixture.lease("A").unwrap();
        scene.leases.keep(&scene.session, scene.fixture.name("A"), lease, true, after(54));
        scene.pass(54);
        assert_eq!(scene.asked.load(Ordering::SeqCst), 1, "a beat is due at once");
        assert!(scene.notices().is_empty());
        scene.pass(55);
        assert_eq!(scene.notices().len(), 1);
    }

    #[test]
    fn one_unanswered_request_stands_for_all_leases_that_are_due() {
        let scene = Scene::holding(&["A", "B", "C", "D"]);
        scene.pass(20);
        assert_eq!(scene.asked.load(Ordering::SeqCst), 1);
        scene.pass(55);
        assert_eq!((scene.asked.load(Ordering::SeqCst), scene.notices().len()), (2, 4));
    }
}
