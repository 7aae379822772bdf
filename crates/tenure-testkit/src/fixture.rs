//! A new store with a controlled clock, controlled processes and predictable ids, and one-line wrappers of the
//! kernel's operations.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure_core::error::TaskName;
use tenure_core::event::{Event, EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{Ids, LeaseKey, LeaseProof, SectionId, TaskId};
use tenure_core::kernel::{self, Beat, Evicted, Finish, Finished, Grant, Notes, Terms, Waiter};
use tenure_core::lease::{Attempt, Lease, LeaseState, Resource};
use tenure_core::section::{Section, SectionMode};
use tenure_core::store::{
    ClaimHint, ClaimTarget, Durability, EventFilter, LeaseFilter, NewSection, NewTask, Store, TaskEdit,
    TaskLookup, Tx, View, Viewer,
};
use tenure_core::task::{DEFAULT_PRIORITY, Task, TaskStatus};
use tenure_core::{Clock, Context, ErrorCode, Policy, Result};
use tenure_postgres::{Address, Doorbell, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::clock::ManualClock;
use crate::memory::{MemoryStore, Rings};
use crate::postgres::Cluster;
use crate::world::{CountingIds, FakeProcesses};

/// The ttl of claims made through the fixture.
pub const TTL: Duration = Duration::from_mins(1);
pub const TICKET_LIFE: Duration = Duration::from_secs(15);
/// The actor of changes made by the test itself.
pub const TESTER: &str = "tester";

/// The result of a claim. Unlike a [`Grant`] it may be dropped: many tests claim a task only to make it held.
#[derive(Debug, Clone)]
pub struct Granted {
    pub task: Task,
    pub lease: Lease,
    pub key: Option<LeaseKey>,
    pub reacquired: bool,
    pub taken_over: Option<(Lease, LeaseState)>,
    pub leftovers: Vec<Attempt>,
    pub notes: Notes,
}

impl From<Grant> for Granted {
    fn from(grant: Grant) -> Self {
        let Grant { task, lease, key, reacquired, taken_over, leftovers, notes } = grant;
        Self { task, lease, key, reacquired, taken_over, leftovers, notes }
    }
}

impl Granted {
    /// The credential that came with a new grant.
    pub fn proof(&self) -> LeaseProof {
        LeaseProof { lease: self.lease.id.clone(), key: self.key.clone().unwrap() }
    }
}

#[derive(Debug)]
pub struct Fixture {
    pub store: Box<dyn Store>,
    pub clock: Arc<ManualClock>,
    pub world: FakeProcesses,
    pub ids: CountingIds,
    pub policy: Policy,
    bells: Bells,
    folder: TempDir,
}

/// How a test observes the doorbells that a store rings.
#[derive(Debug)]
enum Bells {
    Recorded(Rings),
    Sockets(RefCell<BTreeMap<String, UnixDatagram>>),
    /// Each doorbell listens on a separate connection.
    Channels(ServerProject, RefCell<BTreeMap<String, (PostgresStore, Doorbell)>>),
}

/// A project on the shared server, with a controlled clock.
#[derive(Debug)]
struct ServerProject {
    id: String,
    clock: Arc<ManualClock>,
}

impl ServerProject {
    fn open(&self) -> PostgresStore {
        let address = Address::parse(&Cluster::shared().url(), &Surroundings::default()).unwrap();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let options = tenure_postgres::OpenOptions { clock: Some(clock), ..Default::default() };
        PostgresStore::create(address, &self.id, "conformance", options).unwrap()
    }
}

/// After every test, the stored counters must equal the counts of the rows.
impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.store.check(false).unwrap(), []);
        }
    }
}

impl Fixture {
    pub fn memory() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::new(Arc::clone(&clock));
        let bells = Bells::Recorded(store.rings());
        Self::new(Box::new(store), clock, bells, tempfile::tempdir().unwrap())
    }

    pub fn sqlite() -> Self {
        let clock = Arc::new(ManualClock::default());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = SqliteStore::create(&path, OpenOptions::new(clock.clone())).unwrap();
        Self::new(Box::new(store), clock, Bells::Sockets(RefCell::default()), folder)
    }

    pub fn postgres() -> Self {
        let clock = Arc::new(ManualClock::default());
        let project = ServerProject { id: fresh_project(), clock: Arc::clone(&clock) };
        let store = Box::new(project.open());
        let bells = Bells::Channels(project, RefCell::default());
        Self::new(store, clock, bells, tempfile::tempdir().unwrap())
    }

    fn new(store: Box<dyn Store>, clock: Arc<ManualClock>, bells: Bells, folder: TempDir) -> Self {
        let policy = Policy { ticket_life: TICKET_LIFE, max_attempts: 3, max_rejections: 5, review: false };
        let (world, ids) = (FakeProcesses::default(), CountingIds::default());
        Self { store, clock, world, ids, policy, bells, folder }
    }

    pub fn context(&self) -> Context<'_> {
        Context::new(&self.world, &self.ids, self.policy)
    }

    /// A test does not need durable commits.
    pub fn write<T>(&self, body: impl FnMut(&mut dyn Tx) -> Result<T>) -> Result<T> {
        self.store.write(Durability::Process, body)
    }

    pub fn read<T>(&self, body: impl FnMut(&dyn View) -> Result<T>) -> T {
        self.store.read(body).unwrap()
    }

    pub fn viewer(&self, view: &dyn View, me: Option<&Caller>) -> Viewer {
        self.context().viewer(view, me.map(|caller| &caller.holder)).unwrap()
    }

    /// A caller without a process: only expiry ends its leases.
    pub fn bare(&self, name: &str) -> Caller {
        Caller::new(Holder::agent(name))
    }

    pub fn worker(&self, name: &str, pid: u32) -> Caller {
        self.bare(name).with_process(self.world.process(pid))
    }

    /// A doorbell that the test can observe.
    pub fn bell(&self, name: &str) -> String {
        match &self.bells {
            Bells::Recorded(_) => name.to_owned(),
            Bells::Sockets(sockets) => {
                let path = self.folder.path().join(name).to_string_lossy().into_owned();
                let socket = UnixDatagram::bind(&path).unwrap();
                socket.set_nonblocking(true).unwrap();
                sockets.borrow_mut().insert(path.clone(), socket);
                path
            }
            Bells::Channels(project, channels) => {
                let store = project.open();
                let doorbell = store.doorbell().unwrap();
                let channel = doorbell.address();
                channels.borrow_mut().insert(channel.clone(), (store, doorbell));
                channel
            }
        }
    }

    /// Whether the doorbell has rung since the last call.
    pub fn heard(&self, bell: &str) -> bool {
        match &self.bells {
            Bells::Recorded(rings) => {
                let mut rings = rings.lock().unwrap();
                let before = rings.len();
                rings.retain(|rung| rung != bell);
                rings.len() < before
            }
            Bells::Sockets(sockets) => {
                let sockets = sockets.borrow();
                let mut byte = [0];
                let mut heard = false;
                while sockets[bell].recv(&mut byte).is_ok() {
                    heard = true;
                }
                heard
            }
            // Sends a ring through the listener's connection; all earlier rings arrive before it.
            Bells::Channels(_, channels) => {
                let channels = channels.borrow();
                let (listener, doorbell) = &channels[bell];
                let listener: &dyn Store = listener;
                let ring = |tx: &mut dyn Tx| {
                    tx.ring(bell);
                    Ok(())
                };
                listener.write(Durability::Process, ring).unwrap();
                let mut byte = [0];
                let heard =
                    (0..1000).take_while(|_| rustix::io::read(doorbell.fd(), &mut byte).is_ok()).count();
                assert!(heard > 0, "the test's own ring did not arrive");
                heard > 1
            }
        }
    }
}

/// A new, unused project.
pub fn fresh_project() -> String {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

/// Rows.
impl Fixture {
    pub fn add_section(&self, name: &str, mode: SectionMode) -> SectionId {
        let count = i64::try_from(self.read(|view| view.sections()).len()).unwrap();
        let section = NewSection {
            id: self.ids.section(),
            name: name.to_owned(),
            mode,
            priority: DEFAULT_PRIORITY,
            position: count + 1,
        };
        let event = || NewEvent::new(EventKind::SectionCreated, TESTER);
        self.write(|tx| tx.insert_section(&section, event())).unwrap();
        section.id
    }

    pub fn add_task(&self, key: &str) -> TaskId {
        self.add_task_in(key, None)
    }

    pub fn add_task_in(&self, key: &str, section: Option<&SectionId>) -> TaskId {
        let id = self.ids.task();
        self.write(|tx| {
            let position = tx.last_position(section)?.unwrap_or(0) + 1;
            let task = new_task(&id, key, section, position);
            tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, TESTER).task(&id))
        })
        .unwrap();
        id
    }

    pub fn depend(&self, key: &str, on: &str) {
        let (task, on) = (self.id(key), self.id(on));
        self.write(|tx| tx.add_dependency(&task, &on)).unwrap();
    }

    pub fn edit(&self, key: &str, edit: &TaskEdit) {
        let id = self.id(key);
        self.write(|tx| tx.edit_task(&id, edit, None)).unwrap();
    }

    pub fn name(&self, key: &str) -> TaskName {
        self.read(|view| view.find_tasks(TaskLookup::Key(key), 1)).remove(0)
    }

    pub fn id(&self, key: &str) -> TaskId {
        TaskId::new(self.name(key).id)
    }

    pub fn task(&self, key: &str) -> Task {
        let id = self.id(key);
        self.read(|view| view.task(&id, &self.viewer(view, None))).unwrap()
    }

    pub fn status(&self, key: &str) -> TaskStatus {
        self.task(key).status
    }

    pub fn section(&self, name: &str) -> Section {
        self.read(|view| view.section_by_name(name)).unwrap()
    }

    pub fn lease(&self, key: &str) -> Option<Lease> {
        self.task(key).lease
    }

    /// All leases that the resource ever had, oldest first.
    pub fn history(&self, resource: &Resource) -> Vec<Lease> {
        let filter =
            LeaseFilter { resource: Some(resource.clone()), include_ended: true, ..LeaseFilter::default() };
        self.read(|view| view.leases(&filter))
    }

    pub fn events(&self) -> Vec<Event> {
        let filter = EventFilter { limit: u64::from(u32::MAX), ..EventFilter::default() };
        self.read(|view| view.events(&filter))
    }
}

/// Operations.
impl Fixture {
    pub fn claim(&self, caller: &Caller, key: &str) -> Result<Granted> {
        self.claim_on(caller, key, &Terms::new(TTL))
    }

    pub fn claim_on(&self, caller: &Caller, key: &str, terms: &Terms) -> Result<Granted> {
        let id = self.id(key);
        let hint = ClaimHint { holder: &caller.holder, wants: ClaimTarget::Task(key) };
        self.store
            .claim(hint, |tx| kernel::acquire_task(tx, &self.context(), caller, &id, terms))?
            .granted()
            .map(Granted::from)
    }

    pub fn next(&self, caller: &Caller) -> Option<Granted> {
        self.next_on(caller, &Terms::new(TTL))
    }

    pub fn next_on(&self, caller: &Caller, terms: &Terms) -> Option<Granted> {
        self.next_in(caller, None, terms)
    }

    pub fn next_in(&self, caller: &Caller, section: Option<&SectionId>, terms: &Terms) -> Option<Granted> {
        let hint = ClaimHint { holder: &caller.holder, wants: ClaimTarget::Next(section) };
        self.store
            .claim(hint, |tx| kernel::acquire_next(tx, &self.context(), caller, section, terms))
            .unwrap()
            .map(Granted::from)
    }

    pub fn take(&self, caller: &Caller, resource: &Resource, terms: &Terms) -> Option<Lease> {
        self.write(|tx| kernel::acquire_resource(tx, &self.context(), caller, resource, &resource.id, terms))
            .unwrap()
            .ok()
    }

    pub fn renew(&self, caller: &Caller, key: &str) -> Result<Lease> {
        self.beat(caller, key, Beat::default())
    }

    pub fn revive(&self, caller: &Caller, key: &str) -> Result<Lease> {
        self.beat(caller, key, Beat { revive: true, ..Beat::default() })
    }

    pub fn beat(&self, caller: &Caller, key: &str, beat: Beat) -> Result<Lease> {
        let name = self.name(key);
        self.write(|tx| kernel::renew(tx, &self.context(), caller, &name, beat))
    }

    pub fn check(&self, caller: &Caller, key: &str) -> Result<Lease> {
        let name = self.name(key);
        self.store.read(|view| kernel::check(view, &self.context(), caller, &name))
    }

    pub fn finish(&self, caller: &Caller, key: &str, word: Finish<'_>) -> Result<Finished> {
        self.finish_keeping(caller, key, word, false)
    }

    pub fn finish_keeping(
        &self,
        caller: &Caller,
        key: &str,
        word: Finish<'_>,
        keep_section: bool,
    ) -> Result<Finished> {
        let name = self.name(key);
        self.write(|tx| kernel::finish(tx, &self.context(), caller, &name, word, keep_section))
    }

    pub fn done(&self, caller: &Caller, key: &str) -> Result<Finished> {
        self.finish(caller, key, Finish::Done)
    }

    pub fn release(&self, caller: &Caller, key: &str) -> Result<Finished> {
        self.finish(caller, key, Finish::Release(None))
    }

    pub fn override_status(
        &self,
        caller: &Caller,
        key: &str,
        to: TaskStatus,
        force: bool,
    ) -> Result<Option<Lease>> {
        let id = self.id(key);
        self.write(|tx| kernel::override_status(tx, &self.context(), caller, &id, to, None, force))
            .map(|done| done.evicted)
    }

    pub fn force(&self, shown: &Lease) -> Result<Evicted> {
        self.write(|tx| kernel::evict(tx, &self.context(), TESTER, shown))
    }

    pub fn cleanup(&self) -> Vec<(Lease, LeaseState)> {
        self.write(|tx| kernel::close_all_lapsed(tx, &self.context(), TESTER)).unwrap()
    }

    pub fn begin_attempt(&self, lease: &Lease, owner: &Caller) -> Attempt {
        let owner = owner.process.clone().unwrap();
        self.write(|tx| kernel::begin_attempt(tx, &self.context(), lease, &owner, None, None, None)).unwrap()
    }

    /// Enqueues the caller, which must have a process.
    pub fn wait_for(&self, caller: &Caller, wish: &Resource, bell: &str) -> (i64, Resource) {
        self.wait_again(caller, wish, bell, None)
    }

    /// Enqueues a caller that may have a ticket.
    pub fn wait_again(
        &self,
        caller: &Caller,
        wish: &Resource,
        bell: &str,
        ticket: Option<&(i64, Resource)>,
    ) -> (i64, Resource) {
        let process = caller.process.clone().unwrap();
        let waiter = Waiter { caller, process: &process, doorbell: Some(bell), review: false };
        let ticket = ticket.map(|(number, of)| (*number, of));
        let number = self.write(|tx| kernel::enqueue(tx, &self.context(), &waiter, wish, ticket)).unwrap();
        (number, wish.clone())
    }

    pub fn leave_queue(&self, ticket: &(i64, Resource)) {
        self.write(|tx| kernel::dequeue(tx, &self.context(), ticket.0, &ticket.1)).unwrap();
    }
}

pub fn new_task(id: &TaskId, key: &str, section: Option<&SectionId>, position: i64) -> NewTask {
    NewTask { section: section.cloned(), position, ..NewTask::new(id.clone(), key, format!("Task {key}")) }
}

/// Claim terms that present a ticket.
pub fn with_ticket(ticket: &(i64, Resource)) -> Terms {
    Terms { ticket: Some(ticket.clone()), ..Terms::new(TTL) }
}

/// The error code of an expected refusal.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Result<T>) -> ErrorCode {
    match answer {
        Ok(answer) => panic!("expected a refusal, got {answer:?}"),
        Err(error) => error.code(),
    }
}
