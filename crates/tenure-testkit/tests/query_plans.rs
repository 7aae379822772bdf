//! The statements that both SQL stores share find their rows through an index, in both databases.
//!
//! [`Recorder`] is a transaction that only records the statements of each call. A call may read a whole table only if
//! [`WHOLE_TABLES`] says so.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use rusqlite::Connection;
use tenure_core::error::Result;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::Holder;
use tenure_core::id::{Fence, SectionId, TaskId};
use tenure_core::job::{ItemState, JobState};
use tenure_core::lease::{EndReason, Lease, Resource, ResourceKind};
use tenure_core::store::{
    Cell, CellKind, Column, Counting, Dialect, EventFilter, ItemFilter, JobLookup, Known, LeaseFilter,
    MessageFilter, NewLease, OpenLease, ProjectContents, ReadFeed, ReadJobs, ReadLeases, ReadRunners,
    ReadSections, ReadSessions, ReadTasks, Reserved, Row, SqlTx, Table, TaskFilter, TaskLookup, TaskQueries,
    TxState, Viewer, WriteFeed, WriteJobs, WriteLeases, WriteTasks,
};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{SystemClock, Timestamp};
use tenure_postgres::{Address, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};
use tenure_testkit::postgres::Cluster;

/// The calls that may read all rows of a table or of an index. Each either lists the whole table, or reads a table that
/// stays small or a partial index of the wanted rows, or stops at its `LIMIT`.
const WHOLE_TABLES: &[(&str, &[&str])] = &[
    ("agents", &["a", "agents_pkey"]),
    ("all_tickets", &["tickets", "tickets_pkey"]),
    ("count_tasks", &["c", "sections_pkey", "sections_order"]),
    ("count_tickets", &["tickets_queue", "tickets_pkey"]),
    ("find_by_key_ignoring_case", &["t", "tasks_project_key_key"]),
    ("find_by_title", &["tasks_project_key_key"]),
    ("find_by_titles", &["t", "tasks_project_key_key"]),
    ("find_by_title_part", &["t", "tasks_project_key_key"]),
    ("jobs", &["jobs", "jobs_created"]),
    ("loading_jobs", &["jobs_unfinished"]),
    ("messages", &["messages", "messages_pkey"]),
    ("open_attempts", &["attempts_open"]),
    ("open_leases", &["leases_holder", "leases_open"]),
    ("parked", &["sqlite_autoindex_parkings_1", "parkings_pkey"]),
    ("work_tickets", &["tickets", "tickets_pkey"]),
    ("recorded_processes", &["leases_process", "tickets", "tickets_pkey"]),
    ("runners", &["runners_open", "runners_started", "runners_pkey"]),
    ("running_items", &["job_items_running"]),
    ("sections", &["sections_order"]),
    ("sessions", &["sessions_started"]),
];

/// The statements of each call, by its name, and the types of their parameters after the project.
type Statements = BTreeMap<&'static str, BTreeMap<String, Vec<&'static str>>>;

fn type_of(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Int | CellKind::StoreTime => "bigint",
        CellKind::Text => "text",
    }
}

struct Recorder<const POSTGRES: bool> {
    call: &'static str,
    statements: RefCell<Statements>,
    state: TxState,
}

impl<const POSTGRES: bool> Recorder<POSTGRES> {
    fn record(&self, sql: &str, types: Vec<&'static str>) {
        self.statements.borrow_mut().entry(self.call).or_default().insert(sql.to_owned(), types);
    }

    /// Records the statements of `work`. What it returns does not matter: it has found no rows.
    fn call<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> Result<T>) {
        self.call = name;
        drop(work(self));
    }
}

impl<const POSTGRES: bool> Known for Recorder<POSTGRES> {}

impl<const POSTGRES: bool> Counting for Recorder<POSTGRES> {
    fn count_for_dependents(&mut self, _: &TaskId, _: i64) -> Result<()> {
        Ok(())
    }
}

impl<const POSTGRES: bool> TaskQueries for Recorder<POSTGRES> {
    fn task_with_readiness(&self, _: &TaskId, _: &Viewer) -> Result<Option<Task>> {
        Ok(None)
    }

    fn task_without_readiness(&self, _: &TaskId, _: &Viewer) -> Result<Option<Task>> {
        Ok(None)
    }

    fn task_page(&self, _: &TaskFilter, _: &Viewer) -> Result<Vec<Task>> {
        Ok(Vec::new())
    }

    fn task_count(&self, _: &TaskFilter, _: &Viewer) -> Result<u64> {
        Ok(0)
    }

    fn first_ready(&self, _: Option<&SectionId>, _: &Reserved, _: &Viewer) -> Result<Option<TaskId>> {
        Ok(None)
    }
}

impl<const POSTGRES: bool> SqlTx for Recorder<POSTGRES> {
    const DIALECT: Dialect = if POSTGRES { Dialect::Postgres } else { Dialect::Sqlite };

    fn state(&self) -> &TxState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut TxState {
        &mut self.state
    }

    fn query<T>(
        &self,
        sql: &str,
        values: &[Cell<'_>],
        _: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let kind = |cell: &Cell<'_>| if let Cell::Int(_) = cell { CellKind::Int } else { CellKind::Text };
        self.record(sql, values.iter().map(|cell| type_of(kind(cell))).collect());
        Ok(Vec::new())
    }

    fn execute(&mut self, _: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<u64> {
        self.record(sql, values.iter().map(|(column, _)| type_of(column.kind)).collect());
        Ok(0)
    }

    fn insert_numbered(&mut self, _: &'static Table, _: &[(Column, Cell<'_>)]) -> Result<i64> {
        Ok(1)
    }

    fn insert_rows(&mut self, _: &'static Table, _: &[Column], _: &[Vec<Cell<'_>>]) -> Result<()> {
        Ok(())
    }

    fn insert_lease(&mut self, _: &NewLease) -> Result<Option<Lease>> {
        Ok(None)
    }

    fn draw_task_number(&mut self) -> Result<i64> {
        Ok(1)
    }

    fn write_status(&mut self, _: &TaskId, _: TaskStatus, _: TaskStatus) -> Result<()> {
        Ok(())
    }
}

/// Every call whose statements could read more rows than they need.
fn statements<const POSTGRES: bool>() -> Statements {
    let state = TxState::new(Timestamp::from_millis(0));
    let mut tx = Recorder::<POSTGRES> { call: "", statements: RefCell::default(), state };
    let (task, section) = (TaskId::new("t"), SectionId::new("s"));
    let (resource, holder) = (Resource::new(ResourceKind::Task, "t"), Holder::agent("ann"));
    let event = || NewEvent::new(EventKind::TaskUpdated, "ann");

    tx.call("recorded_processes", |tx| tx.recorded_processes());
    tx.call("open_lease", |tx| tx.open_lease(&resource));
    tx.call("latest_lease", |tx| tx.latest_lease(&resource));
    tx.call("lease_by_id", |tx| tx.lease_by_id("l"));
    tx.call("lease_by_fence", |tx| tx.lease_by_fence(Fence::new(1)));
    tx.call("open_leases", |tx| tx.leases(&LeaseFilter::default()));
    tx.call("leases_of_resource", |tx| {
        tx.leases(&LeaseFilter {
            resource: Some(resource.clone()),
            include_ended: true,
            ..LeaseFilter::default()
        })
    });
    tx.call("leases_of_holder", |tx| {
        tx.leases(&LeaseFilter { holder: Some(holder.clone()), ..LeaseFilter::default() })
    });
    tx.call("expired_leases_of_holder", |tx| {
        let expired_since = Some(Timestamp::from_millis(0));
        tx.leases(&LeaseFilter { holder: Some(holder.clone()), expired_since, ..LeaseFilter::default() })
    });
    tx.call("task_leases_in_section", |tx| tx.task_leases_in_section(&section, &holder));
    tx.call("tickets", |tx| tx.tickets(&resource));
    tx.call("work_tickets", |tx| tx.work_tickets());
    tx.call("all_tickets", |tx| tx.all_tickets());
    tx.call("count_tickets", |tx| tx.count_tickets());
    tx.call("attempts", |tx| tx.attempts(&resource));
    tx.call("attempts_at", |tx| tx.attempts_at(&[task.clone(), TaskId::new("u")]));
    tx.call("ending_attempts", |tx| tx.ending_attempts(&resource));
    tx.call("open_attempts", |tx| tx.open_attempts());
    tx.call("end_lease", |tx| tx.end_lease(Fence::new(1), EndReason::Released));
    tx.call("refresh_ticket", |tx| tx.refresh_ticket(1));
    tx.call("delete_ticket", |tx| tx.delete_ticket(1));

    tx.call("agent", |tx| tx.agent("ann"));
    tx.call("agents", |tx| tx.agents());
    tx.call("see_agent", |tx| tx.see_agent("ann"));
    tx.call("messages", |tx| tx.messages(&MessageFilter { limit: 50, ..MessageFilter::default() }));
    tx.call("messages_of_task", |tx| {
        tx.messages(&MessageFilter { task: Some(task.clone()), limit: 50, ..MessageFilter::default() })
    });
    tx.call("messages_to", |tx| {
        tx.messages(&MessageFilter { to: Some("ann".to_owned()), limit: 50, ..MessageFilter::default() })
    });
    tx.call("task_notes", |tx| tx.task_notes(&task, "ann"));
    tx.call("acknowledge", |tx| tx.acknowledge(1, "ann"));
    tx.call("events", |tx| tx.events(&EventFilter { limit: 50, ..EventFilter::default() }));
    tx.call("events_of_task", |tx| {
        tx.events(&EventFilter { task: Some(task.clone()), last: true, limit: 50, ..EventFilter::default() })
    });
    tx.call("last_events", |tx| tx.last_events(&[task.clone(), TaskId::new("u")]));

    tx.call("job", |tx| tx.job("j"));
    tx.call("find_jobs_by_name", |tx| tx.find_jobs(JobLookup::Name("n"), 2));
    tx.call("find_jobs_by_id", |tx| tx.find_jobs(JobLookup::IdPrefix("n"), 2));
    tx.call("jobs", |tx| tx.jobs(50));
    tx.call("loading_jobs", |tx| tx.loading_jobs());
    tx.call("items", |tx| {
        tx.items(&ItemFilter { job: Some("j".to_owned()), state: None, after: 0, limit: 50 })
    });
    tx.call("running_items", |tx| tx.items(&ItemFilter::running(None)));
    tx.call("running_items_of_job", |tx| tx.items(&ItemFilter::running(Some("j"))));
    tx.call("first_pending", |tx| tx.first_pending("j"));
    tx.call("set_job_state", |tx| tx.set_job_state("j", JobState::Open, event()));
    tx.call("delete_items", |tx| tx.delete_items("j", &[1, 2]));
    tx.call("requeue_items", |tx| tx.requeue_items("j", ItemState::Failed, Timestamp::from_millis(0)));

    tx.call("section", |tx| tx.section(&section));
    tx.call("section_by_name", |tx| tx.section_by_name("S"));
    tx.call("sections", |tx| tx.sections());
    tx.call("runners", |tx| tx.runners(10));
    tx.call("parked", |tx| tx.parked());
    tx.call("sessions", |tx| tx.sessions(10));
    tx.call("done_tasks", |tx| tx.done_tasks("s"));

    tx.call("find_by_id", |tx| tx.find_tasks(TaskLookup::Id("t"), 2));
    tx.call("find_by_ids", |tx| tx.find_tasks(TaskLookup::Ids(&[task.clone(), TaskId::new("u")]), 2));
    tx.call("find_by_id_prefix", |tx| tx.find_tasks(TaskLookup::IdPrefix("t"), 2));
    tx.call("find_by_key", |tx| tx.find_tasks(TaskLookup::Key("t"), 2));
    tx.call("find_by_title", |tx| tx.find_tasks(TaskLookup::Title("t"), 2));
    tx.call("find_by_key_ignoring_case", |tx| tx.find_tasks(TaskLookup::KeyIgnoringCase("t"), 2));
    tx.call("find_by_titles", |tx| tx.find_tasks(TaskLookup::Titles(&["t", "u"]), 2));
    tx.call("find_by_title_part", |tx| tx.find_tasks(TaskLookup::TitlePart("t"), 2));
    tx.call("count_tasks", |tx| tx.count_tasks());
    tx.call("count_matches_in_section", |tx| {
        let filter = TaskFilter { section: Some(section.clone()), ..TaskFilter::default() };
        tx.count_matches(&filter, &Viewer::default())
    });
    tx.call("set_status", |tx| {
        let event = event().status(TaskStatus::InProgress, TaskStatus::Completed);
        tx.set_status(&task, TaskStatus::Completed, event)
    });
    tx.call("edges_from", |tx| tx.edges_from(&task));
    tx.call("dependents", |tx| tx.dependents(&task));
    tx.call("last_position", |tx| tx.last_position(None));
    tx.call("position_after", |tx| tx.position_after(None, 1));
    tx.call("spread_positions", |tx| tx.spread_positions(None));
    tx.call("remove_dependency", |tx| tx.remove_dependency(&task, &task));

    let dialect = Recorder::<POSTGRES>::DIALECT;
    let one = |table: &str, alias: &str, conditions: &[String]| match dialect {
        Dialect::Sqlite => {
            format!("SELECT {} FROM {table} {alias} WHERE {alias}.id = :of", conditions.join(" AND "))
        }
        Dialect::Postgres => format!(
            "SELECT {} FROM tenure.{table} {alias} WHERE {alias}.project = $1 AND {alias}.id = $6",
            conditions.join(" AND ")
        ),
    };
    let viewer = || vec!["bigint", "text[]", "text", "text", "text"];
    tx.call = "section_open";
    tx.record(&one("sections", "s", &dialect.section_open(ProjectContents::UNKNOWN)), viewer());
    tx.call = "task_free";
    tx.record(&one("tasks", "t", &[dialect.task_free(OpenLease::NotJoined)]), viewer());
    tx.call = "blocked";
    tx.record(&one("tasks", "t", &[dialect.blocked()]), viewer());
    tx.call = "lapsed";
    tx.record(&one("tasks", "t", &[dialect.lapsed()]), viewer());
    tx.statements.into_inner()
}

/// The tables that the calls read as a whole, if that is not expected.
fn unexpected(scans: &[(&'static str, String)]) -> Vec<String> {
    let expected = |call: &str, table: &str| {
        WHOLE_TABLES.iter().any(|(name, tables)| *name == call && tables.contains(&table))
    };
    let unexpected = scans.iter().filter(|(call, table)| !expected(call, table));
    unexpected.map(|(call, table)| format!("{call} reads all of {table}")).collect()
}

#[test]
fn sqlite_reads_no_whole_table_for_a_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.db");
    drop(SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap());
    let database = Connection::open(&path).unwrap();
    let mut scans = Vec::new();
    for (call, texts) in statements::<false>() {
        for sql in texts.keys() {
            let mut plan = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            // Unbound parameters are null.
            let mut lines = plan.raw_query();
            while let Some(row) = lines.next().unwrap() {
                let line: String = row.get(3).unwrap();
                let Some(scanned) = line.strip_prefix("SCAN ") else { continue };
                let words: Vec<&str> = scanned.split_whitespace().collect();
                // The scan reads the rows of a subquery, not of a table.
                let made = ["r", "fresh", "m", "listed", "CONSTANT"].contains(&words[0])
                    || words[0].starts_with('(');
                let index = words.iter().position(|word| *word == "INDEX").map(|at| words[at + 1]);
                if !made {
                    scans.push((call, index.unwrap_or(words[0]).to_owned()));
                }
            }
        }
    }
    assert_eq!(unexpected(&scans), Vec::<String>::new());
}

/// Enough rows for the planner to prefer an index.
const ROWS: &str = "
    INSERT INTO tenure.sections (project, id, name, mode, priority, position, created_at, updated_at)
        SELECT p.id, 's' || n, 's' || n, 'parallel', 100, n, 0, 0 FROM tenure.projects p, generate_series(1, 50) n;
    INSERT INTO tenure.tasks (project, id, key, title, status, section_id, priority, position, created_at, updated_at)
        SELECT p.id, 't' || n, 'k' || n, 'Task ' || n, 'pending', 's' || (1 + n % 50), 100, n, 0, 0
        FROM tenure.projects p, generate_series(1, 2000) n;
    INSERT INTO tenure.task_deps (project, task_id, depends_on)
        SELECT p.id, 't' || n, 't' || (n + 1) FROM tenure.projects p, generate_series(1, 1000) n;
    INSERT INTO tenure.messages (project, task_id, sender, recipient, text, sent_at)
        SELECT p.id, 't' || n, 'ann', 'a' || n, 'x', 0 FROM tenure.projects p, generate_series(1, 2000) n;
    INSERT INTO tenure.jobs (project, id, name, state, definition, created_at, updated_at)
        SELECT p.id, 'j' || n, 'j' || n, 'completed', '{}', n, n FROM tenure.projects p, generate_series(1, 1000) n;
    INSERT INTO tenure.leases (project, lease_id, key_hash, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                               heartbeat_at, expires_at, ended_at, end_reason)
        SELECT p.id, 'l' || n, 'h' || n, 'task', 't' || n, 'agent', 'a' || (n % 100), 1, 0, 0, 0,
               CASE WHEN n > 500 THEN 0 END, CASE WHEN n > 500 THEN 'released' END
        FROM tenure.projects p, generate_series(1, 2000) n;
    INSERT INTO tenure.attempts (project, id, resource_kind, resource_id, fence, state, owner, started_at, ended_at)
        SELECT project, 'x' || fence, 'task', resource_id, fence, 'ended', '{}', 0, 0 FROM tenure.leases;
    INSERT INTO tenure.tickets (project, resource_kind, resource_id, holder_kind, holder_id, process, created_at, refreshed_at, life_ms, review)
        SELECT p.id, 'task', 't' || n, 'agent', 'a' || n, '{}', 0, 0, 0, 0 FROM tenure.projects p, generate_series(1, 500) n;
    INSERT INTO tenure.section_deps (project, section_id, depends_on)
        SELECT p.id, 's' || n, 's' || m FROM tenure.projects p, generate_series(1, 40) n, generate_series(41, 50) m;
    INSERT INTO tenure.events (project, seq, at, kind, actor, task_id)
        SELECT p.id, n, 0, 'task.updated', 'ann', 't' || n FROM tenure.projects p, generate_series(1, 2000) n;
    ANALYZE;";

/// The settings that the store makes for its sessions.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET join_collapse_limit = 1;
    SET from_collapse_limit = 1;";

#[test]
fn postgresql_reads_no_whole_table_for_a_few_rows() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let address = Address::parse(&cluster.url_of(&database), &Surroundings::default()).unwrap();
    let project = "0b3e7a52-1111-4222-8333-444455556666";
    PostgresStore::create(address, project, "plans", tenure_postgres::OpenOptions::default()).unwrap();
    cluster.sql(&database, ROWS);
    let mut script = SETTINGS.to_owned();
    for (call, texts) in statements::<true>() {
        for (number, (sql, types)) in texts.iter().enumerate() {
            let name = format!("{call}_{number}");
            let nulls = ", NULL".repeat(types.len());
            let types = [&["uuid"], types.as_slice()].concat().join(", ");
            let _ = write!(
                script,
                "SELECT 'call {call}'; PREPARE {name} ({types}) AS {sql};
                 EXPLAIN (COSTS OFF) EXECUTE {name} (NULL{nulls});"
            );
        }
    }
    let plans = cluster.sql(&database, &script);
    let calls: BTreeSet<&'static str> = statements::<true>().into_keys().collect();
    let (mut scans, mut call, mut table) = (Vec::new(), "", None);
    for line in plans.lines().map(str::trim) {
        let starts = line.contains("Scan using") || line.contains("Seq Scan on") || line.starts_with("call ");
        if starts && let Some(read) = table.take() {
            // The only condition on the index is the project.
            scans.push((call, read));
        }
        if let Some(name) = line.strip_prefix("call ") {
            call = calls.get(name).copied().unwrap();
        } else if starts {
            let named = line.split_once(" using ").or_else(|| line.split_once(" on ")).unwrap().1;
            table = Some(named.split_whitespace().next().unwrap().to_owned());
        } else if let Some(condition) = line.strip_prefix("Index Cond: ")
            && (condition.contains(" AND ") || !condition.contains("project = "))
        {
            table = None;
        }
    }
    scans.extend(table.map(|read| (call, read)));
    assert_eq!(unexpected(&scans), Vec::<String>::new());
}
