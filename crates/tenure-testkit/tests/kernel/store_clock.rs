//! The store clock of SQLite: a step of the wall clock, or a process with a wrong one, neither ends nor prolongs anything.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::clock::SinceBoot;
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Terms, Verdict};
use tenure_core::lease::Lease;
use tenure_core::rules::{self, AddTask};
use tenure_core::store::{Durability, EventFilter, LeaseFilter, Store, Tx};
use tenure_core::{Clock, Context, Policy, Timestamp};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::FakeProcesses;

const START: i64 = 1_768_476_600_000;
const HOURS: i64 = 2 * 60 * 60 * 1000;
const TTL: Duration = Duration::from_mins(1);

/// A machine whose wall clock and time since the boot are set by the test.
#[derive(Debug, Clone)]
struct Machine {
    boot: &'static str,
    wall: Arc<AtomicI64>,
    since_boot: Arc<AtomicI64>,
    /// How wrong the wall clock of this process is.
    skew: i64,
}

impl Machine {
    fn new(boot: &'static str, wall: i64) -> Self {
        let (wall, since_boot) = (Arc::new(AtomicI64::new(wall)), Arc::new(AtomicI64::new(1000)));
        Self { boot, wall, since_boot, skew: 0 }
    }

    fn skewed(&self, skew: i64) -> Self {
        Self { skew, ..self.clone() }
    }

    fn step(&self, by: i64) {
        self.wall.fetch_add(by, Ordering::SeqCst);
    }

    fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.step(millis);
        self.since_boot.fetch_add(millis, Ordering::SeqCst);
    }

    fn open(&self, path: &Path) -> Client {
        let store = SqliteStore::create(path, OpenOptions::new(Arc::new(self.clone()))).unwrap();
        Client { store: Box::new(store), clock: self.clone() }
    }
}

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst) + self.skew)
    }

    fn since_boot(&self) -> Option<SinceBoot> {
        Some(SinceBoot { boot: self.boot.to_owned(), millis: self.since_boot.load(Ordering::SeqCst) })
    }
}

struct Client {
    store: Box<dyn Store>,
    clock: Machine,
}

impl Client {
    fn with<T>(&self, body: impl Fn(&mut dyn Tx, &Context<'_>) -> tenure_core::Result<T>) -> T {
        let judge = FakeProcesses::default();
        let policy = Policy {
            ticket_life: Duration::from_secs(15),
            max_attempts: 3,
            max_rejections: 5,
            review: false,
        };
        let ctx = Context::new(&judge, &RandomIds, policy);
        self.store.write(Durability::Process, |tx| body(tx, &ctx)).unwrap()
    }

    fn add(&self, key: &str) {
        let new = AddTask { title: key.to_owned(), key: Some(key.to_owned()), ..AddTask::default() };
        let tester = Caller::new(Holder::agent("tester"));
        self.with(|tx, ctx| rules::add_task(tx, ctx, &tester, &new).map(drop));
    }

    /// Whether the claim was granted.
    fn claims(&self, key: &str, name: &str) -> bool {
        let caller = Caller::new(Holder::agent(name));
        self.with(|tx, ctx| {
            let task = tenure_core::reference::task(tx, key)?;
            let id = TaskId::new(&task.id);
            let verdict = kernel::acquire_task(tx, ctx, &caller, &id, &Terms::new(TTL))?;
            Ok(matches!(verdict, Verdict::Granted(_)))
        })
    }

    fn lease(&self) -> Lease {
        self.store.read(|view| view.leases(&LeaseFilter::default())).unwrap().pop().unwrap()
    }

    fn left(&self) -> Duration {
        self.lease().expires_at.since(self.clock.now())
    }
}

#[test]
fn a_step_of_the_wall_clock_neither_ends_nor_prolongs_a_lease() {
    for step in [HOURS, -HOURS] {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::new("boot", START);
        let client = machine.open(&folder.path().join("tenure.db"));
        client.add("A");
        assert!(client.claims("A", "ann"));
        machine.step(step);
        assert_eq!(client.left(), TTL, "shown as the wall time of what is left");
        machine.pass(Duration::from_millis(59_999));
        assert!(!client.claims("A", "bob"));
        machine.pass(Duration::from_millis(1));
        assert!(client.claims("A", "bob"));
    }
}

#[test]
fn a_process_with_a_wrong_clock_judges_and_grants_like_all_others() {
    for skew in [HOURS, -HOURS] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let machine = Machine::new("boot", START);
        let (right, wrong) = (machine.open(&path), machine.skewed(skew).open(&path));
        right.add("A");
        right.add("B");
        assert!(right.claims("A", "ann"));
        assert!(!wrong.claims("A", "bob"));
        assert_eq!(wrong.left(), TTL);
        machine.pass(TTL);
        assert!(wrong.claims("A", "bob"));
        assert!(!right.claims("A", "ann"));
        assert_eq!(right.left(), TTL);
        machine.pass(TTL);
        assert!(right.claims("A", "ann"));
        wrong.add("C");
        let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
        let event = right.store.read(|view| view.events(&last)).unwrap().pop().unwrap();
        assert_eq!(event.at, wrong.clock.now(), "an event has the wall time of its process");
    }
}

#[test]
fn after_a_reboot_no_lease_outlasts_its_ttl() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.db");
    let before = Machine::new("first", START).open(&path);
    before.add("A");
    assert!(before.claims("A", "ann"));
    // The clock is behind after the reboot, as on a machine without a clock battery.
    let machine = Machine::new("second", START - HOURS);
    let after = machine.open(&path);
    assert_eq!(after.left(), TTL, "also before the first change");
    assert!(!after.claims("A", "bob"));
    machine.pass(TTL);
    assert!(after.claims("A", "bob"));
    let other = machine.skewed(HOURS).open(&path);
    assert!(!other.claims("A", "ann"));
    assert_eq!(other.left(), TTL);
}
