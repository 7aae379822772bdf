//! Moving a project from one store to another: no matter at which step the process dies, at most one store serves the
//! project, and a second try completes the move.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::holder::{Caller, Holder};
use tenure_core::id::{RandomIds, StoreId};
use tenure_core::kernel::{self, Grant, Terms};
use tenure_core::rules::{self, AddTask};
use tenure_core::store::{
    ClaimHint, ClaimTarget, Durability, FENCES_SKIPPED, History, Movable, Store, StoreAt, TaskFilter,
    Transfer, Tx, View, export_store, move_store, restore_store,
};
use tenure_core::{Context, Error, ErrorCode, Policy, Result, SystemClock};
use tenure_postgres::{Address, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::FakeProcesses;
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;

const POLICY: Policy =
    Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };

fn context(judge: &FakeProcesses) -> Context<'_> {
    Context::new(judge, &RandomIds, POLICY)
}

/// A store in a process that dies after a number of commits, counted across both stores.
#[derive(Debug)]
struct Mortal {
    store: Box<dyn Movable>,
    commits_left: Arc<AtomicU32>,
}

impl Store for Mortal {
    fn id(&self) -> Result<StoreId> {
        self.store.id()
    }

    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        self.store.read_with(body)
    }

    fn write_with(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        self.store.write_with(durability, body)
    }
}

impl Movable for Mortal {
    fn transfer_with(&self, body: &mut dyn FnMut(&mut dyn Transfer) -> Result<()>) -> Result<()> {
        self.store.transfer_with(&mut |tx| {
            body(tx)?;
            let left = self.commits_left.load(Ordering::Relaxed);
            self.commits_left
                .store(left.checked_sub(1).ok_or_else(|| Error::store("dead"))?, Ordering::Relaxed);
            Ok(())
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Sqlite,
    Postgres,
}

/// The source and the target of a move.
struct Scene {
    from: Mortal,
    to: Mortal,
    commits_left: Arc<AtomicU32>,
    folder: tempfile::TempDir,
}

fn sqlite(folder: &tempfile::TempDir, name: &str) -> SqliteStore {
    SqliteStore::create(&folder.path().join(name), OpenOptions::new(Arc::new(SystemClock))).unwrap()
}

fn postgres() -> PostgresStore {
    let address = Address::parse(&Cluster::shared().url(), &Surroundings::default()).unwrap();
    PostgresStore::create(address, &fresh_project(), "moves", tenure_postgres::OpenOptions::default())
        .unwrap()
}

fn store(kind: Kind, folder: &tempfile::TempDir, name: &str) -> Box<dyn Movable> {
    match kind {
        Kind::Sqlite => Box::new(sqlite(folder, name)),
        Kind::Postgres => Box::new(postgres()),
    }
}

impl Scene {
    fn new(from: Kind, to: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let commits_left = Arc::new(AtomicU32::new(u32::MAX));
        let mortal = |kind, name| Mortal {
            store: store(kind, &folder, name),
            commits_left: Arc::clone(&commits_left),
        };
        let (from, to) = (mortal(from, "from.db"), mortal(to, "to.db"));
        add(&from, "A");
        add(&from, "B");
        Self { from, to, commits_left, folder }
    }

    fn copy(&self) -> Result<()> {
        let judge = FakeProcesses::default();
        let (from, to) = (StoreAt { store: &self.from, url: "from" }, StoreAt { store: &self.to, url: "to" });
        move_store(from, to, &judge).map(drop)
    }

    /// A copy in a process that dies after this many commits.
    fn dying_copy(&self, commits: u32) -> Result<()> {
        self.commits_left.store(commits, Ordering::Relaxed);
        let outcome = self.copy();
        self.commits_left.store(u32::MAX, Ordering::Relaxed);
        outcome
    }
}

fn add(store: &dyn Store, key: &str) {
    let judge = FakeProcesses::default();
    let task = AddTask { title: format!("Task {key}"), key: Some(key.to_owned()), ..AddTask::default() };
    let boss = Caller::new(Holder::agent("boss"));
    store.write(Durability::Power, |tx| rules::add_task(tx, &context(&judge), &boss, &task)).unwrap();
}

fn keys(store: &dyn Store) -> Result<Vec<String>> {
    let judge = FakeProcesses::default();
    store.read(|view| {
        let viewer = context(&judge).viewer(view, None)?;
        let (tasks, _) = view.list_tasks(&TaskFilter { limit: 100, ..TaskFilter::default() }, &viewer)?;
        Ok(tasks.into_iter().map(|task| task.key).collect())
    })
}

fn serves(store: &dyn Store) -> bool {
    keys(store).is_ok_and(|keys| !keys.is_empty())
}

fn claim_next(store: &dyn Store, name: &str, ttl: Duration) -> Result<Option<Grant>> {
    let judge = FakeProcesses::default();
    let caller = Caller::new(Holder::agent(name));
    store.claim(ClaimHint { holder: &caller.holder, wants: ClaimTarget::Next(None) }, |tx| {
        kernel::acquire_next(tx, &context(&judge), &caller, None, &Terms::new(ttl))
    })
}

const MOVES: [(Kind, Kind); 2] = [(Kind::Sqlite, Kind::Postgres), (Kind::Postgres, Kind::Sqlite)];

#[test]
fn a_death_in_any_step_leaves_at_most_one_store_serving_and_the_next_copy_continues() {
    for (from, to) in MOVES {
        for commits in 0..3 {
            let scene = Scene::new(from, to);
            scene.dying_copy(commits).unwrap_err();
            let serving = [serves(&scene.from), serves(&scene.to)];
            assert_ne!(serving, [true, true], "{from:?} to {to:?}, dead after {commits} commits");
            let mut expected = vec!["A", "B"];
            if serving[0] {
                // The work goes on, so what was copied is outdated.
                add(&scene.from, "C");
                expected.push("C");
            }
            scene.copy().unwrap();
            assert!(!serves(&scene.from));
            assert_eq!(keys(&scene.to).unwrap(), expected);
            scene.copy().unwrap();
        }
    }
}

#[test]
fn a_sealed_store_grants_nothing_and_names_the_other_one() {
    for (from, to) in MOVES {
        let scene = Scene::new(from, to);
        scene.copy().unwrap();
        let (source, target): (&dyn Store, &dyn Store) = (&scene.from, &scene.to);
        let refusals = [
            claim_next(source, "ann", Duration::from_mins(5)).unwrap_err(),
            source.write(Durability::Process, |tx| tx.count_tasks()).unwrap_err(),
            source.read(|view| view.count_tasks()).unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.code(), ErrorCode::StoreMoved);
            assert!(refusal.to_string().contains("copied to to"), "{refusal}");
        }
        assert!(claim_next(target, "ann", Duration::from_mins(5)).unwrap().is_some());
    }
}

#[test]
fn a_copy_back_needs_a_store_that_was_sealed_to_this_one() {
    for (from, to) in MOVES {
        let scene = Scene::new(from, to);
        let judge = FakeProcesses::default();
        scene.copy().unwrap();
        add(&scene.to, "C");
        let stranger = store(Kind::Sqlite, &scene.folder, "stranger.db");
        add(&*stranger, "Z");
        let at = |store, url| StoreAt { store, url };
        let onto_rows = move_store(at(&scene.to, "to"), at(&*stranger, "stranger"), &judge);
        assert_eq!(onto_rows.unwrap_err().code(), ErrorCode::Store);
        let onto_sealed = move_store(at(&*stranger, "stranger"), at(&scene.from, "from"), &judge);
        assert_eq!(onto_sealed.unwrap_err().code(), ErrorCode::StoreMoved);
        assert_eq!(keys(&*stranger).unwrap(), ["Z"]);
        move_store(at(&scene.to, "to"), at(&scene.from, "from"), &judge).unwrap();
        assert_eq!(keys(&scene.from).unwrap(), ["A", "B", "C"]);
        assert!(!serves(&scene.to));
        assert_eq!(scene.from.check(false).unwrap(), []);
    }
}

#[test]
fn a_restored_store_accepts_nothing_from_the_holders_of_its_backup() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let folder = tempfile::tempdir().unwrap();
        let judge = FakeProcesses::default();
        let store = store(kind, &folder, "store.db");
        add(&*store, "A");
        add(&*store, "B");
        let old = claim_next(&*store, "ann", Duration::from_mins(5)).unwrap().unwrap();
        let backup = sqlite(&folder, "backup.db");
        export_store(&*store, &backup).unwrap();
        let later = claim_next(&*store, "bob", Duration::from_mins(5)).unwrap().unwrap();
        let ctx = context(&judge);
        let refused = restore_store(&backup, &*store, &ctx, "boss", false);
        assert_eq!(refused.unwrap_err().code(), ErrorCode::TaskLocked);
        restore_store(&backup, &*store, &ctx, "boss", true).unwrap();
        let ann = Caller::new(old.lease.holder.clone()).with_fence(Some(old.lease.fence));
        let name = kernel::name_of(&old.task);
        let store: &dyn Store = &*store;
        let late = store.write(Durability::Power, |tx| {
            kernel::finish(tx, &ctx, &ann, &name, kernel::Finish::Done, false).map(drop)
        });
        assert!(matches!(late.unwrap_err().code(), ErrorCode::LeaseLost | ErrorCode::NotHolder));
        let new = claim_next(store, "carl", Duration::from_mins(5)).unwrap().unwrap();
        assert_eq!(new.task.key, "A");
        assert!(new.lease.fence.number() > later.lease.fence.number() + FENCES_SKIPPED);
        assert_eq!(store.check(false).unwrap(), []);
    }
}

#[test]
fn the_history_of_a_restored_store_is_pruned_from_its_beginning() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let folder = tempfile::tempdir().unwrap();
        let judge = FakeProcesses::default();
        let movable = store(kind, &folder, "store.db");
        let store: &dyn Store = &*movable;
        for key in ["A", "B"] {
            add(store, key);
        }
        let backup = sqlite(&folder, "backup.db");
        export_store(&*movable, &backup).unwrap();
        store
            .write(Durability::Power, |tx| {
                tx.set_pruned_through(History::Events, 1000)?;
                tx.set_pruned_through(History::Leases, 1000)
            })
            .unwrap();
        restore_store(&backup, &*movable, &context(&judge), "boss", false).unwrap();
        for history in [History::Events, History::Leases] {
            assert_eq!(store.read(|view| view.pruned_through(history)).unwrap(), 0, "{kind:?}");
        }
    }
}
