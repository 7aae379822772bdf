//! Waiters of one machine that refresh their tickets together.

use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Waiter};
use tenure_core::lease::Resource;
use tenure_core::store::{Durability, Store, StoreHint};
use tenure_core::{Context, Policy};
use tenure_postgres::{OpenOptions, PostgresStore, RosterOptions};
use tenure_testkit::FakeProcesses;
use tenure_testkit::postgres::Cluster;

use crate::scene::{POLICY, add_tasks, address, claim_next, create};

const POLL: Duration = Duration::from_millis(600);

/// A task that is held, and the machine whose waiters wait for it.
struct Queue {
    project: String,
    url: String,
    holder: PostgresStore,
    machine: tempfile::TempDir,
}

impl Queue {
    fn new() -> Self {
        let cluster = Cluster::shared();
        let (holder, project) = create(&cluster.url());
        add_tasks(&holder, 1);
        assert!(claim_next(&holder, "holder").unwrap().is_some());
        Self { project, url: cluster.url(), holder, machine: tempfile::tempdir().unwrap() }
    }

    fn waiter(&self, name: &str) -> QueuedWaiter {
        let roster = RosterOptions { folder: self.machine.path().join("run"), poll_interval: POLL };
        let options = OpenOptions { roster: Some(roster), max_listeners: 2, ..OpenOptions::default() };
        let store = PostgresStore::open(address(&self.url), &self.project, options).unwrap();
        let task = Resource::task(&TaskId::new("00000000-0000-4000-8000-000000000000"));
        let judge = FakeProcesses::default();
        let policy = Policy { ticket_life: POLL * 3, ..POLICY };
        let ctx = Context::new(&judge, &RandomIds, policy);
        let (caller, process) = (Caller::new(Holder::agent(name)), Incarnation::current());
        let waiter = Waiter { caller: &caller, process: &process, doorbell: None, review: false };
        let queue: &dyn Store = &store;
        let ticket =
            queue.write(Durability::Process, |tx| kernel::enqueue(tx, &ctx, &waiter, &task, None)).unwrap();
        QueuedWaiter { store, ticket, task }
    }

    /// When the ticket was refreshed last, in milliseconds.
    fn refreshed_at(&self, waiter: &QueuedWaiter) -> i64 {
        let store: &dyn Store = &self.holder;
        let tickets = store.read(|view| view.all_tickets()).unwrap();
        tickets.iter().find(|ticket| ticket.number == waiter.ticket).unwrap().refreshed_at.as_millis()
    }

    /// The folder in which the waiters meet.
    fn folder(&self) -> std::path::PathBuf {
        let mut found = std::fs::read_dir(self.machine.path().join("run")).unwrap();
        found.next().unwrap().unwrap().path()
    }
}

struct QueuedWaiter {
    store: PostgresStore,
    ticket: i64,
    task: Resource,
}

impl QueuedWaiter {
    /// Whether the ticket counts and the holder still has the task.
    fn polls(&self) -> bool {
        self.store.refresh_ticket(self.ticket, &self.task).unwrap().is_some_and(|(_, lease)| lease.is_some())
    }
}

/// Calls `step` until it is true.
fn until(what: &str, mut step: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !step() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not in 20 s: {what}");
        std::thread::sleep(POLL / 20);
    }
}

#[test]
fn one_waiter_refreshes_the_tickets_of_its_machine() {
    let queue = Queue::new();
    let (first, second) = (queue.waiter("first"), queue.waiter("second"));
    assert!(first.polls() && second.polls());
    let before = queue.refreshed_at(&second);
    let mut asked = 0;
    for _ in 0..12 {
        std::thread::sleep(POLL * 3 / 10);
        assert!(first.polls());
        let old = queue.refreshed_at(&second);
        assert!(second.polls());
        asked += u32::from(queue.refreshed_at(&second) > old);
    }
    let passed = queue.refreshed_at(&second) - before;
    assert!(passed > 3 * i64::try_from(POLL.as_millis()).unwrap(), "the ticket is {passed} ms younger");
    assert!(asked <= 2, "the second one has asked {asked} times");
    assert!(first.store.refresh_pause(POLL) < POLL, "each looks more often than it polls");
}

#[test]
fn a_waiter_that_is_not_awake_loses_its_place_while_others_refresh() {
    let queue = Queue::new();
    let (awake, stopped) = (queue.waiter("awake"), queue.waiter("stopped"));
    assert!(awake.polls() && stopped.polls());
    let last = queue.refreshed_at(&stopped);
    let begun = Instant::now();
    while begun.elapsed() < POLL * 4 {
        assert!(awake.polls());
        std::thread::sleep(POLL / 20);
    }
    let late = queue.refreshed_at(&stopped) - last;
    assert!(late < 300, "it was not awake since, but was refreshed as of {late} ms later");
    assert!(!stopped.polls());
    assert!(awake.polls());
}

#[test]
fn a_waiter_learns_from_the_refresh_of_another_that_the_lease_has_ended() {
    let queue = Queue::new();
    let (first, second) = (queue.waiter("first"), queue.waiter("second"));
    assert!(first.polls() && second.polls());
    until("they share a refresh", || {
        first.polls() && second.polls() && second.store.refresh_pause(POLL) < POLL
    });
    let store: &dyn Store = &queue.holder;
    let lease = store.read(|view| view.open_lease(&second.task)).unwrap().unwrap();
    store
        .write(Durability::Power, |tx| tx.end_lease(lease.fence, tenure_core::lease::EndReason::Released))
        .unwrap();
    let begun = Instant::now();
    until("both know", || !first.polls() && !second.polls());
    assert!(begun.elapsed() < POLL * 2, "{:?}", begun.elapsed());
}

/// Locks the files by which one waiter has the right to ask for all, now and for some time, as stopped waiters do.
fn hold_the_right_to_ask(folder: &Path) -> Vec<std::fs::File> {
    let slot = tenure_lock::millis_since_boot().unwrap() / i64::try_from(POLL.as_millis()).unwrap();
    (slot..slot + 40)
        .map(|slot| {
            let file = std::fs::File::create(folder.join(format!("asking-{slot}"))).unwrap();
            file.try_lock().unwrap();
            file
        })
        .collect()
}

#[test]
fn waiters_keep_their_places_if_the_one_that_refreshes_is_stopped() {
    let queue = Queue::new();
    let (first, second) = (queue.waiter("first"), queue.waiter("second"));
    assert!(first.polls() && second.polls());
    let held = hold_the_right_to_ask(&queue.folder());
    let before = (queue.refreshed_at(&first), queue.refreshed_at(&second));
    until("each refreshes its own ticket", || {
        assert!(first.polls() && second.polls(), "no place is lost");
        queue.refreshed_at(&first) > before.0 && queue.refreshed_at(&second) > before.1
    });
    drop(held);
}

#[test]
fn a_ticket_that_a_transaction_has_locked_delays_no_other() {
    let queue = Queue::new();
    let (first, second) = (queue.waiter("first"), queue.waiter("second"));
    assert!(first.polls() && second.polls());
    let refreshes = |before: i64| first.polls() && queue.refreshed_at(&first) > before;
    let before = queue.refreshed_at(&first);
    until("the first one asks", || refreshes(before));
    // It is awake after that, so the next request is to refresh its ticket too.
    std::thread::sleep(POLL / 20);
    assert!(second.polls());
    let mut client = postgres::Client::connect(&queue.url, postgres::NoTls).unwrap();
    let mut locking = client.transaction().unwrap();
    locking.execute("SELECT 1 FROM tenure.tickets WHERE number = $1 FOR UPDATE", &[&second.ticket]).unwrap();
    let (before, begun) = (queue.refreshed_at(&first), Instant::now());
    until("the first one is refreshed", || refreshes(before));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    locking.rollback().unwrap();
    assert!(second.polls());
}

#[test]
fn waiters_that_poll_take_the_places_of_listeners_that_have_ended() {
    let queue = Queue::new();
    let waiters = ["first", "second", "third"].map(|name| queue.waiter(name));
    let bells = waiters.each_ref().map(|waiter| waiter.store.doorbell().unwrap());
    let sleep = |waiter: &QueuedWaiter| {
        assert!(waiter.polls());
        let store: &dyn Store = &waiter.store;
        store.hint(StoreHint::Sleeps);
    };
    // After more than one request, each ticket is refreshed together with the others.
    let begun = Instant::now();
    while begun.elapsed() < POLL * 3 / 2 {
        waiters.iter().for_each(sleep);
        std::thread::sleep(POLL / 20);
    }
    let [first, second, third] = waiters;
    assert!(!first.store.gave_up_listening() && !second.store.gave_up_listening());
    assert!(third.store.gave_up_listening());
    drop(second);
    // The first one always asks the server before the third one would.
    until("the third one listens", || {
        sleep(&first);
        sleep(&third);
        !third.store.gave_up_listening()
    });
    assert!(!first.store.gave_up_listening());
    drop(bells);
}

#[test]
#[cfg(unix)]
fn a_folder_that_others_can_use_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let queue = Queue::new();
    let run = queue.machine.path().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o777)).unwrap();
    let waiter = queue.waiter("first");
    assert!(waiter.polls(), "it refreshes its own ticket");
    assert_eq!(std::fs::read_dir(&run).unwrap().count(), 0);
}
