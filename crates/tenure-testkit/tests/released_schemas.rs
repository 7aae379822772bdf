//! A stored database of every schema opens, keeps its rows and remains usable.
//!
//! `tests/fixtures/` has one file per store and schema. Until the first release the newest fixture follows the
//! schema: after an edit of `schema/001.sql`, regenerate it with `TENURE_UPDATE_FIXTURES=1 cargo nextest run -p
//! tenure-testkit --test released_schemas`. After a release a fixture never changes.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::holder::{Caller, Holder};
use tenure_core::id::RandomIds;
use tenure_core::kernel::{self, Finish, Terms};
use tenure_core::rules::{self, AddSection, AddTask};
use tenure_core::section::SectionMode;
use tenure_core::store::{Durability, LeaseFilter, MessageFilter, Store, TaskFilter};
use tenure_core::{Context, Policy, SystemClock};
use tenure_postgres::{Address, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::FakeProcesses;
use tenure_testkit::postgres::{Cluster, program};

const PROJECT: &str = "0b3e7a52-1111-4222-8333-444455556666";
const POLICY: Policy =
    Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn updating() -> bool {
    std::env::var_os("TENURE_UPDATE_FIXTURES").is_some()
}

/// A section with three tasks: the first completed, the second claimed by an agent that has since died.
fn fill(store: &dyn Store) {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let ann = Caller::new(Holder::agent("ann"));
    store
        .write(Durability::Power, |tx| {
            let section =
                AddSection { name: "Backend".to_owned(), mode: SectionMode::Serial, priority: None };
            rules::add_section(tx, &ctx, &ann, &section)?;
            for (key, after) in [("A", None), ("B", Some("A")), ("C", Some("B"))] {
                let task = AddTask {
                    title: format!("Task {key}"),
                    key: Some(key.to_owned()),
                    section: Some("Backend".to_owned()),
                    depends_on: after.into_iter().map(str::to_owned).collect(),
                    labels: vec!["stored".to_owned()],
                    ..AddTask::default()
                };
                rules::add_task(tx, &ctx, &ann, &task)?;
            }
            let terms = Terms::new(Duration::from_secs(1));
            let first = kernel::acquire_next(tx, &ctx, &ann, None, &terms)?.unwrap();
            kernel::finish(tx, &ctx, &ann, &kernel::name_of(&first.task), Finish::Done, false)?;
            let second = kernel::acquire_next(tx, &ctx, &ann, None, &terms)?.unwrap();
            let name = kernel::name_of(&second.task);
            rules::send_message(tx, Some(&name), "ann", None, "half done")?;
            Ok(())
        })
        .unwrap();
}

/// The rows are as `fill` wrote them, and the next agent takes over the second task under a greater fence.
fn works_on(store: &dyn Store) {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let all = TaskFilter { limit: 10, ..TaskFilter::default() };
    let tasks = store.read(|view| Ok(view.list_tasks(&all, &ctx.viewer(view, None)?)?.0)).unwrap();
    let rows: Vec<String> = tasks.iter().map(|task| format!("{} {}", task.key, task.status)).collect();
    assert_eq!(rows, ["A completed", "B in_progress", "C pending"]);
    let history = LeaseFilter { include_ended: true, ..LeaseFilter::default() };
    let fences = store.read(|view| view.leases(&history)).unwrap();
    let last = fences.iter().map(|lease| lease.fence).max().unwrap();
    let bob = Caller::new(Holder::agent("bob"));
    let terms = Terms::new(Duration::from_mins(1));
    let grant = store
        .write(Durability::Power, |tx| kernel::acquire_next(tx, &ctx, &bob, None, &terms))
        .unwrap()
        .unwrap();
    assert_eq!(grant.task.key, "B");
    assert!(grant.lease.fence > last, "{:?} after {last:?}", grant.lease.fence);
    let for_b = MessageFilter { task: Some(grant.task.id.clone()), limit: 10, ..MessageFilter::default() };
    let (messages, _) = store.read(|view| view.messages(&for_b)).unwrap();
    assert_eq!(messages.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["half done"]);
    assert_eq!(store.check(false).unwrap(), []);
}

fn open_sqlite(path: &Path) -> SqliteStore {
    SqliteStore::open(path, OpenOptions::new(Arc::new(SystemClock))).unwrap()
}

#[test]
fn a_stored_sqlite_database_of_schema_1_opens_and_remains_usable() {
    let folder = tempfile::tempdir().unwrap();
    if updating() {
        let path = folder.path().join("new.db");
        let store = SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        fill(&store);
        drop(store);
        let stored = fixture("sqlite-1.db");
        let _ = fs::remove_file(&stored);
        let conn = rusqlite::Connection::open(&path).unwrap();
        // Without a home, the copy becomes a separate store with its first change, as after a reboot.
        conn.execute("UPDATE identity SET home = NULL, boot = NULL", []).unwrap();
        conn.execute("VACUUM INTO ?1", [stored.to_str().unwrap()]).unwrap();
    }
    let path = folder.path().join("tenure.db");
    fs::copy(fixture("sqlite-1.db"), &path).unwrap();
    works_on(&open_sqlite(&path));

    let fresh = folder.path().join("fresh.db");
    drop(SqliteStore::create(&fresh, OpenOptions::new(Arc::new(SystemClock))).unwrap());
    assert_eq!(
        sqlite_schema(&path),
        sqlite_schema(&fresh),
        "the fixture has another schema than a new database; see the head of this file"
    );
}

fn sqlite_schema(path: &Path) -> Vec<String> {
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut statement =
        conn.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_stored_postgresql_database_of_schema_1_opens_and_remains_usable() {
    let cluster = Cluster::shared();
    let address =
        |database: &str| Address::parse(&cluster.url_of(database), &Surroundings::default()).unwrap();
    let create = |database: &str| {
        PostgresStore::create(address(database), PROJECT, "stored", tenure_postgres::OpenOptions::default())
            .unwrap()
    };
    let fresh = cluster.new_database();
    let store = create(&fresh);
    if updating() {
        fill(&store);
        let mut dump = Command::new(program("pg_dump"));
        dump.args(["--inserts", "--no-owner", "--no-privileges", "--schema=tenure", "-U", "tenure", "-h"]);
        dump.arg(cluster.folder()).args(["-p", &cluster.port().to_string(), &fresh]);
        let dumped = dump.output().unwrap();
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        let text = String::from_utf8(dumped.stdout).unwrap();
        // Drops lines that depend on the version of pg_dump.
        let kept = |line: &&str| !line.starts_with("--") && !line.starts_with('\\') && !line.is_empty();
        let lines: Vec<&str> = text.lines().filter(kept).collect();
        fs::write(fixture("postgres-1.sql"), lines.join("\n") + "\n").unwrap();
    }
    drop(store);
    let stored = cluster.new_database();
    cluster.sql(&stored, &fs::read_to_string(fixture("postgres-1.sql")).unwrap());
    let store =
        PostgresStore::open(address(&stored), PROJECT, tenure_postgres::OpenOptions::default()).unwrap();
    works_on(&store);
    let columns =
        "SELECT table_name, column_name, data_type, domain_name, is_nullable FROM information_schema.columns
                   WHERE table_schema = 'tenure' ORDER BY 1, 2";
    let indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'tenure' ORDER BY 1";
    for query in [columns, indexes] {
        assert_eq!(
            cluster.sql(&stored, query),
            cluster.sql(&fresh, query),
            "the fixture has another schema than a new database; see the head of this file"
        );
    }
}
