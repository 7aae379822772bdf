//! A project in a sandbox, on SQLite or PostgreSQL.

use std::fs::File;
use std::io::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tenure_core::SystemClock;
use tenure_core::store::Store;
use tenure_postgres::{Address, PostgresStore, Surroundings};
use tenure_sqlite::{OpenOptions, SqliteStore};

use super::{Answer, Running, Sandbox, processes, until};
use crate::postgres;

/// Derefs to its sandbox; commands of the project run in its folder.
#[derive(Debug)]
pub struct Project {
    sandbox: Arc<Sandbox>,
    root: PathBuf,
    /// The variable `TENURE_STORE` for the project's commands, which overrides the configuration.
    pub store_variable: Option<String>,
    id: OnceLock<String>,
}

impl Deref for Project {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Project {
    pub(super) fn bare(sandbox: Arc<Sandbox>, root: PathBuf) -> Self {
        std::fs::create_dir_all(&root).unwrap();
        let project = Self { sandbox, root, store_variable: None, id: OnceLock::new() };
        if let Some(url) = project.server() {
            // The documented order: first the configuration names the server, then `init` creates the project
            // there.
            std::fs::create_dir(project.root.join(".tenure")).unwrap();
            std::fs::write(project.config_file(), format!("store:\n  url: '{url}'\n")).unwrap();
        }
        project
    }

    #[track_caller]
    pub fn init(&self, more: &[&str]) -> Value {
        let made = self.ok(&[&["init"], more].concat());
        self.trust();
        made
    }

    /// Records that a person has trusted the configuration as it is now.
    pub fn trust(&self) {
        self.sandbox.trust(&self.root);
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// The URL of the server that has the rows; `None` on SQLite.
    pub fn server(&self) -> Option<&str> {
        self.store_variable.as_deref().or(self.sandbox.server())
    }

    fn config_file(&self) -> PathBuf {
        self.root.join(".tenure/config.yaml")
    }

    /// Appends to the project's configuration and trusts the result, as a person would.
    pub fn configure(&self, more: &str) {
        let before = std::fs::read_to_string(self.config_file()).unwrap_or_default();
        std::fs::write(self.config_file(), format!("{before}{more}\n")).unwrap();
        self.trust();
    }

    /// Sets the sandbox's environment variables and the project's folder for a command.
    pub fn surround(&self, command: &mut Command) {
        self.sandbox.surround(command);
        command.current_dir(&self.root);
        if let Some(url) = &self.store_variable {
            command.env("TENURE_STORE", url);
        }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.suite().binary);
        self.surround(&mut command);
        command.args(args);
        command
    }

    /// The program with a wall clock that is wrong by `skew`, such as `+2h`. The monotonic clocks are right.
    pub fn skewed(&self, skew: &str, args: &[&str]) -> Command {
        self.sandbox.skew(&self.command(args), skew)
    }

    pub fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Answer {
        self.spawn(args).end()
    }

    /// Runs the program without `TENURE_TRUST`, so that only a person's trust counts.
    #[track_caller]
    pub fn run_distrusting(&self, args: &[&str]) -> Answer {
        let mut command = self.command(args);
        command.env_remove("TENURE_TRUST");
        Running::start(command).end()
    }

    /// Runs the program at a terminal, with `keys` typed into it. The output is what the terminal shows.
    #[track_caller]
    pub fn run_at_a_terminal(&self, args: &[&str], keys: &str) -> Answer {
        let line = std::iter::once(self.suite().binary).chain(args.iter().copied());
        let line: Vec<String> = line.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let mut command = Command::new("script");
        command.args(["-qefc", &line.join(" "), "/dev/null"]);
        self.surround(&mut command);
        command.env_remove("TENURE_TRUST");
        let (reader, mut writer) = std::io::pipe().unwrap();
        command.stdin(reader);
        let running = Running::start(command);
        writer.write_all(keys.as_bytes()).unwrap();
        // The terminal stays open until the command has ended.
        let answer = running.end();
        drop(writer);
        answer
    }

    /// Runs with `--json` and returns `data`; fails the test unless the command succeeds.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).data()
    }

    /// Adds a task whose agent takes these steps.
    #[track_caller]
    pub fn task(&self, key: &str, steps: &[&str]) {
        self.task_in(key, steps, &[]);
    }

    /// [`Project::task`] with more arguments to `tasks add`. Steps that begin with `review: ` are the reviewer's.
    #[track_caller]
    pub fn task_in(&self, key: &str, steps: &[&str], more: &[&str]) {
        let lines: Vec<String> = steps
            .iter()
            .map(|step| if step.starts_with("review: ") { (*step).to_owned() } else { format!("do: {step}") })
            .collect();
        let title = format!("Task {key}");
        let text = lines.join("\n");
        let mut args = vec!["tasks", "add", &title, "--id", key, "-d", &text];
        args.extend(more);
        self.ok(&args);
    }

    #[track_caller]
    pub fn show(&self, key: &str) -> Value {
        self.ok(&["tasks", "show", key])["task"].clone()
    }

    #[track_caller]
    pub fn status(&self, key: &str) -> String {
        self.show(key)["status"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn wait_until(&self, key: &str, status: &str) {
        until(&format!("{key} is {status}"), || self.status(key) == status);
    }

    /// Waits until the open lease of `task` has expired.
    #[track_caller]
    pub fn wait_until_expired(&self, task: &str) {
        until(&format!("the lease of {task} has expired"), || {
            self.ok(&["locks", "show", task])["lock"]["expired"] == true
        });
    }

    /// Open leases on tasks and sections.
    pub fn locks(&self) -> Vec<Value> {
        let all = self.ok(&["locks", "list"])["locks"].as_array().unwrap().clone();
        let held = |lock: &Value, kind: &str| lock["resource"].as_str().unwrap().starts_with(kind);
        all.into_iter().filter(|lock| held(lock, "task:") || held(lock, "section:")).collect()
    }

    /// All events, as the command line prints them.
    pub fn feed(&self) -> Vec<Value> {
        self.ok(&["events", "--limit", "1000000"])["events"].as_array().unwrap().clone()
    }

    /// How often `task` was moved to `status`, according to the events.
    #[track_caller]
    pub fn moves(&self, task: &str, status: &str) -> usize {
        let id = self.show(task)["id"].clone();
        let moved = |event: &&Value| event["taskId"] == id && event["to"] == status;
        self.feed().iter().filter(moved).count()
    }

    /// Starts a runner in the foreground and waits until it has its slot.
    #[track_caller]
    pub fn runner(&self, args: &[&str]) -> Running {
        let mut all = vec!["runners", "start", "--foreground"];
        all.extend(args);
        let mut runner = self.spawn(&all);
        until("the runner has started", || {
            self.log(runner.pid()).contains(" started on ") || !runner.is_running()
        });
        runner
    }

    /// Starts a detached runner and returns its pid.
    #[track_caller]
    pub fn detached_runner(&self, args: &[&str]) -> u32 {
        let mut all = vec!["runners", "start"];
        all.extend(args);
        u32::try_from(self.ok(&all)["runner"]["pid"].as_u64().unwrap()).unwrap()
    }

    /// Runs a runner until there is nothing left to do.
    #[track_caller]
    pub fn work(&self, args: &[&str]) -> Answer {
        let mut all = vec!["runners", "start", "--foreground"];
        all.extend(args);
        self.run(&all)
    }

    /// The live runners that the project's store lists.
    pub fn runners(&self) -> Vec<Value> {
        self.ok(&["status"])["runners"].as_array().unwrap().clone()
    }

    /// The logs of attempts, ordered by name.
    pub fn attempt_logs(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.root.join(".tenure/logs")).unwrap();
        let mut found: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }

    /// Where the rows are on SQLite. On PostgreSQL there is no such file.
    pub fn database(&self) -> PathBuf {
        self.root.join(".tenure/tenure.db")
    }

    pub fn id(&self) -> &str {
        self.id.get_or_init(|| {
            self.ok(&["config", "get", "project.id"])["setting"]["value"].as_str().unwrap().to_owned()
        })
    }

    /// The store itself, without the command line.
    pub fn store(&self) -> Box<dyn Store> {
        if let Some(url) = self.server() {
            let address = Address::parse(url, &Surroundings::default()).unwrap();
            let options = tenure_postgres::OpenOptions::default();
            return Box::new(PostgresStore::open(address, self.id(), options).unwrap());
        }
        let options = OpenOptions::new(Arc::new(SystemClock));
        Box::new(SqliteStore::open(&self.database(), options).unwrap())
    }

    /// Changes the project's rows without the program. Tables are named without a schema, and on both stores they
    /// contain only this project's rows.
    #[track_caller]
    pub fn sql(&self, statements: &str) {
        match self.server() {
            Some(url) => drop(postgres::sql(url, &format!("{}{statements}", self.own_rows()))),
            None => self.connection().execute_batch(statements).unwrap(),
        }
    }

    /// The only column of a query on the project's rows, as text.
    #[track_caller]
    pub fn select(&self, query: &str) -> Vec<String> {
        if let Some(url) = self.server() {
            let answer = postgres::sql(url, &format!("{}{query}", self.own_rows()));
            return answer.lines().map(str::to_owned).collect();
        }
        let connection = self.connection();
        let as_text = format!("WITH found (value) AS ({query}) SELECT CAST(value AS TEXT) FROM found");
        let mut query = connection.prepare(&as_text).unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn connection(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection
    }

    /// Makes the statements after this one see a view of each table, limited to the rows of this project. Views of one
    /// table can be updated, and temporary ones take precedence.
    fn own_rows(&self) -> String {
        let project = self.id();
        format!(
            "DO $$ DECLARE t text; BEGIN
               FOR t IN SELECT table_name FROM information_schema.columns
                        WHERE table_schema = 'tenure' AND column_name = 'project' LOOP
                 EXECUTE format('CREATE TEMP VIEW %I AS SELECT * FROM tenure.%I WHERE project = %L', t, t, '{project}');
               END LOOP;
             END $$; "
        )
    }

    /// Rewrites the recorded processes of holders, waiters, runners and attempts.
    pub fn rewrite_processes(&self, change: impl Fn(&mut Value)) {
        let columns =
            [("leases", "process"), ("runners", "process"), ("attempts", "owner"), ("tickets", "process")];
        for (table, column) in columns {
            let recorded =
                self.select(&format!("SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"));
            for old in recorded {
                let mut process: Value = serde_json::from_str(&old).unwrap();
                change(&mut process);
                self.sql(&format!("UPDATE {table} SET {column} = '{process}' WHERE {column} = '{old}'"));
            }
        }
    }

    /// Keeps all other processes from writing until the result is dropped. Reading still works.
    pub fn hold_writers(&self) -> HeldStore {
        match self.server() {
            Some(url) => HeldStore::with_turn(url, self.id()),
            None => HeldStore::with_lock(&self.database().with_extension("gate.lock")),
        }
    }

    /// Another program keeps the database locked until the result is dropped. Only on SQLite.
    pub fn hold_database(&self) -> HeldStore {
        let connection = self.connection();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        HeldStore::Database(Box::new(connection))
    }

    /// Keeps all other processes from queueing to write until the result is dropped.
    /// On SQLite the order in which waiting processes get this lock is not guaranteed.
    pub fn hold_queue(&self) -> HeldStore {
        match self.server() {
            Some(_) => self.hold_writers(),
            None => HeldStore::with_lock(&self.database().with_extension("queue.lock")),
        }
    }

    /// Stops a process while it holds no lock of the store. If it were stopped during a write, it would block
    /// all other writers.
    pub fn stop_between_writes(&self, pid: u32) {
        until("the process is stopped and others can write", || {
            // On SQLite a writer takes the lock of the queue first, then the gate.
            let queue = self.server().is_none().then(|| self.hold_queue());
            let gate = self.hold_writers();
            processes::signal(pid, Signal::STOP);
            until("the process has stopped", || processes::state(pid) == Some('T'));
            drop((gate, queue));
            let others_can_write = self.server().is_some() || self.database_is_unlocked();
            if !others_can_write {
                processes::signal(pid, Signal::CONT);
            }
            others_can_write
        });
    }

    /// Whether no process holds SQLite's own locks. A process that opens or closes the database takes them outside
    /// the gate, for recovery and for the last checkpoint.
    fn database_is_unlocked(&self) -> bool {
        let connection = self.connection();
        connection.busy_timeout(Duration::from_millis(200)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
    }
}

/// While this exists, no other process can write to the store.
#[derive(Debug)]
pub enum HeldStore {
    /// SQLite: a lock file of the store.
    File(File),
    /// SQLite: a transaction of another program.
    Database(Box<rusqlite::Connection>),
    /// PostgreSQL: a session with the project's turn.
    Session(postgres::Session),
}

impl HeldStore {
    fn with_lock(path: &Path) -> Self {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        file.lock().unwrap();
        Self::File(file)
    }

    /// Uses a separate session instead of a transaction of the store, which the server would end after a few seconds of
    /// silence.
    fn with_turn(url: &str, project: &str) -> Self {
        let digits = u128::from_str_radix(&project.replace('-', ""), 16).unwrap();
        // The two halves of the id, combined as the store does it.
        let turn = ((digits >> 64) ^ digits) & u128::from(u64::MAX);
        let turn = i64::from_ne_bytes(u64::try_from(turn).unwrap().to_ne_bytes());
        Self::Session(postgres::Session::holding(url, &format!("SELECT pg_advisory_lock({turn});")))
    }
}
