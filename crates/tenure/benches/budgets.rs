//! The budgets: ratios measured in one run, interleaved, so that a busy machine slows both sides.
//!
//! `cargo bench -p tenure` prints a table, with `-- --json` an object. It exits 1 if a budget is missed by more than
//! twice: what is only a little over may be the machine. Wall times of whole processes are judged only on an idle
//! machine, and shown on every one. `--writer` is for the bench's own child processes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a bench stops where it fails, prints what it measured, and divides"
)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::json;
use tempfile::TempDir;
use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Finish, Terms, Verdict};
use tenure_core::store::{Durability, Store};
use tenure_core::{Policy, SystemClock, World, reference};
use tenure_lock::ProcessIdentity;
use tenure_sqlite::{OpenOptions, SqliteStore};

const BINARY: &str = env!("CARGO_BIN_EXE_tenure");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(place) = args.iter().position(|arg| arg == "--writer") {
        return write_until_told(&args[place + 1..]);
    }
    let mut table = Table { rows: Vec::new(), load: load() };
    whole_processes(&mut table);
    claim_rate(&mut table);
    for writers in [8, 32] {
        fairness(&mut table, writers);
    }
    hand_over(&mut table);
    take_over(&mut table);
    many_tasks(&mut table);
    #[cfg(feature = "serve")]
    over_the_wire(&mut table);
    let size = std::fs::metadata(BINARY).unwrap().len() as f64 / 1_000_000.0;
    if cfg!(feature = "serve") {
        table.told("release binary with serve, MB (8 without)", size);
    } else {
        table.at_most("release binary, MB", size, 8.0);
    }
    table.print(args.iter().any(|arg| arg == "--json"))
}

// ---- the table ----

#[derive(Debug)]
struct Row {
    what: String,
    value: f64,
    budget: Option<f64>,
    /// The budget is a floor, not a ceiling.
    floor: bool,
    /// It is judged only where nothing else runs: other work makes it longer, and by another factor than what it is
    /// compared with.
    idle_only: bool,
}

impl Row {
    /// How many times over budget it is.
    fn excess(&self) -> f64 {
        match self.budget {
            None => 0.0,
            Some(budget) if self.floor => budget / self.value,
            Some(budget) => self.value / budget,
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Row>,
    /// How many processes wanted to run, for each processor, when the bench began.
    load: f64,
}

impl Table {
    fn add(&mut self, what: &str, value: f64, budget: Option<f64>, floor: bool) {
        eprintln!("  {what}: {value:.3}");
        self.rows.push(Row { what: what.to_owned(), value, budget, floor, idle_only: false });
    }

    /// Wall time.
    fn at_most_when_idle(&mut self, what: &str, value: f64, budget: f64) {
        self.at_most(what, value, budget);
        if let Some(row) = self.rows.last_mut() {
            row.idle_only = true;
        }
    }

    fn at_most(&mut self, what: &str, value: f64, budget: f64) {
        self.add(what, value, Some(budget), false);
    }

    fn at_least(&mut self, what: &str, value: f64, budget: f64) {
        self.add(what, value, Some(budget), true);
    }

    fn told(&mut self, what: &str, value: f64) {
        self.add(what, value, None, false);
    }

    fn print(&self, as_json: bool) -> ExitCode {
        let busy = self.load > 0.75;
        let verdict = |row: &Row| match row.excess() {
            _ if row.budget.is_none() => "",
            excess if excess <= 1.0 => "ok",
            _ if busy && row.idle_only => "busy",
            excess if excess <= 2.0 => "over",
            _ => "BROKEN",
        };
        if as_json {
            let rows: Vec<_> = self
                .rows
                .iter()
                .map(|row| {
                    json!({"what": row.what, "value": row.value, "budget": row.budget,
                           "is": if row.floor { "atLeast" } else { "atMost" }, "verdict": verdict(row)})
                })
                .collect();
            println!("{}", json!({"load": self.load, "budgets": rows}));
        } else {
            println!("{:<58} {:>10}   {:>10}", "what", "measured", "budget");
            if busy {
                println!("(load {:.1} per processor: wall times are shown and not judged)", self.load);
            }
            for row in &self.rows {
                let sign = if row.floor { "≥" } else { "≤" };
                let budget = row.budget.map_or_else(|| "-".to_owned(), |b| format!("{sign} {b}"));
                println!("{:<58} {:>10.3}   {:>10}  {}", row.what, row.value, budget, verdict(row));
            }
        }
        ExitCode::from(u8::from(self.rows.iter().any(|row| verdict(row) == "BROKEN")))
    }
}

/// The last minute's load for each processor.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    load / std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * percent / 100]
}

fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 50)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

// ---- projects and processes ----

#[derive(Debug)]
struct Project {
    folder: TempDir,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tn").tempdir().unwrap();
        let root = folder.path().join("p");
        for name in ["p", "h", "r"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let project = Self { folder, root };
        assert!(project.command(&["init"]).status().unwrap().success());
        project
    }

    /// Puts `count` ready tasks `F1` … into the store, and as many that are completed, blocked or held as in a project
    /// that has been worked on, in one transaction.
    fn fill(&self, count: usize) {
        let conn = Connection::open(self.database()).unwrap();
        conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN").unwrap();
        conn.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO tasks (id, key, title, status, priority, position, created_at, updated_at)
             SELECT printf('%08x-0000-4000-8000-%012x', i * 2654435761 % 4294967296, i), 'F' || i,
                    'task number ' || i, CASE WHEN i % 3 = 0 THEN 'completed' ELSE 'pending' END,
                    100, i * 1048576, 0, 0 FROM n",
            params![i64::try_from(count).unwrap()],
        )
        .unwrap();
        // Every tenth waits for the one before it.
        conn.execute_batch(
            "INSERT INTO task_deps (task_id, depends_on)
             SELECT a.id, b.id FROM tasks a CROSS JOIN tasks b INDEXED BY tasks_position
             ON b.section_id = '' AND b.position = a.position - 1048576
             WHERE a.rowid % 10 = 0 AND a.status = 'pending';
             UPDATE tasks SET open_deps = 1 WHERE id IN (
                 SELECT d.task_id FROM task_deps d JOIN tasks u ON u.id = d.depends_on WHERE u.status = 'pending');
             UPDATE sections SET open_tasks = (SELECT count(*) FROM tasks WHERE status = 'pending') WHERE id = '';
             COMMIT; PRAGMA wal_checkpoint(TRUNCATE); ANALYZE sqlite_schema;",
        )
        .unwrap();
    }

    fn database(&self) -> PathBuf {
        self.root.join(".tenure/tenure.db")
    }

    fn store(&self) -> Box<dyn Store> {
        open(&self.database())
    }

    fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.path().join("h");
        let mut command = Command::new(BINARY);
        command
            .env_clear()
            .env("HOME", &home)
            .env("TENURE_HOME", home.join(".tenure"))
            .env("XDG_RUNTIME_DIR", self.folder.path().join("r"))
            .current_dir(&self.root)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

fn open(database: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::open(database, OpenOptions::new(Arc::new(SystemClock))).unwrap())
}

fn world() -> World<'static> {
    World {
        judge: &ThisMachine,
        ids: &RandomIds,
        policy: Policy {
            ticket_life: Duration::from_secs(15),
            max_attempts: 1000,
            max_rejections: 5,
            review: false,
        },
    }
}

fn claim(store: &dyn Store, caller: &Caller, key: &str) {
    let verdict = store.write(Durability::Power, |tx| {
        let id = TaskId::new(reference::task(tx, key)?.id);
        kernel::acquire_task(tx, &world(), caller, &id, &Terms::new(Duration::from_mins(15)))
    });
    assert!(matches!(verdict, Ok(Verdict::Granted(_))), "{verdict:?}");
}

fn release(store: &dyn Store, caller: &Caller, key: &str) {
    let finished = store.write(Durability::Power, |tx| {
        let name = reference::task(tx, key)?;
        kernel::finish(tx, &world(), caller, &name, Finish::Release(None), false)
    });
    assert!(finished.is_ok(), "{finished:?}");
}

fn agent(name: &str) -> Caller {
    Caller::new(Holder::agent(name))
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Wall time from before the start to the end, and processor time, user and system, of the whole process.
fn times(mut command: Command) -> (Duration, Duration) {
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    waitid(WaitId::Pid(pid_of(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let wall = begun.elapsed();
    let used = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
    (wall, Duration::from_nanos(used.split_whitespace().next().unwrap().parse().unwrap()))
}

fn cpu(command: Command) -> Duration {
    times(command).1
}

// ---- what is measured ----

fn whole_processes(table: &mut Table) {
    const RUNS: usize = 200;
    eprintln!("whole processes");
    let project = Project::new();
    project.fill(3 * RUNS);
    let small = Project::new();
    small.fill(20);
    let (mut walls, mut cpus): ([Vec<Duration>; 3], [Vec<Duration>; 3]) = Default::default();
    for run in 0..RUNS {
        let mut truth = Command::new("/bin/true");
        truth.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Every third task is completed, and every tenth may be blocked.
        let key = format!("F{}", 30 * (run / 10) + [1, 2, 4, 5, 7, 8, 11, 13, 14, 16][run % 10]);
        let list = small.command(&["tasks", "list"]);
        let claim = project.command(&["task", "claim", &key, "--agent", "a"]);
        for (place, command) in [truth, list, claim].into_iter().enumerate() {
            let (wall, cpu) = times(command);
            walls[place].push(wall);
            cpus[place].push(cpu);
        }
    }
    let [truth, list, claim] = walls.each_mut().map(|t| median(t).as_secs_f64());
    table.told("/bin/true, whole process, wall, ms", truth * 1000.0);
    table.at_most_when_idle("tasks list ÷ /bin/true, wall", list / truth, 4.0);
    table.at_most_when_idle("task claim ÷ /bin/true, wall", claim / truth, 5.0);
    let [truth, list, claim] = cpus.each_mut().map(|t| median(t).as_secs_f64());
    table.told("/bin/true, whole process, processor time, ms", truth * 1000.0);
    table.told("tasks list ÷ /bin/true, processor time", list / truth);
    table.told("task claim ÷ /bin/true, processor time", claim / truth);
}

/// The same rows as a claim writes, with nothing around them.
fn raw_claim(conn: &Connection, key: &str, number: usize) {
    let run = |sql: &str| conn.prepare_cached(sql).unwrap().execute([]).map(drop);
    run("BEGIN IMMEDIATE").unwrap();
    let one = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        conn.prepare_cached(sql).unwrap().execute(values).unwrap();
    };
    let id: String = conn
        .prepare_cached("SELECT id FROM tasks WHERE key = ?1")
        .unwrap()
        .query_row([key], |row| row.get(0))
        .unwrap();
    one(
        "INSERT INTO leases (lease_id, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                             heartbeat_at, expires_at, claimed_from)
         VALUES (?1, 'task', ?2, 'agent', 'raw', 900000, 1794768000000, 1794768000000, 1794768900000, 'pending')",
        &[&format!("L{number:08X}"), &id],
    );
    one(
        "INSERT INTO events (at, kind, actor, task_id, fence, detail)
         VALUES (1794768000000, 'lease.acquired', 'raw', ?1, ?2, ?3)",
        &[
            &id,
            &conn.last_insert_rowid(),
            &format!(
                "{{\"lease\":\"L{number:08X}\",\"resource\":\"task:{id}\",\"holder\":\"agent raw\",\
                 \"expiresAt\":\"2026-11-15T20:38:02.468Z\",\"takenOverFrom\":null}}"
            ),
        ],
    );
    one("UPDATE tasks SET status = 'in_progress', updated_at = 1794768000000 WHERE id = ?1", &[&id]);
    one(
        "INSERT INTO events (at, kind, actor, task_id, from_status, to_status, fence)
         VALUES (1794768000000, 'task.status', 'raw', ?1, 'pending', 'in_progress', ?2)",
        &[&id, &1],
    );
    one(
        "INSERT INTO agents (id, joined_at, last_seen_at) VALUES ('raw', 1, ?1)
         ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at",
        &[&1_794_768_000_000_i64],
    );
    run("COMMIT").unwrap();
}

fn claim_rate(table: &mut Table) {
    const BLOCKS: usize = 40;
    const BLOCK: usize = 40;
    eprintln!("claim transactions in one process");
    let (ours, raw) = (Project::new(), Project::new());
    for project in [&ours, &raw] {
        project.fill(2 * BLOCKS * BLOCK);
    }
    // Neither completed nor blocked.
    let keys: Vec<String> =
        (1..=2 * BLOCKS * BLOCK).filter(|n| n % 3 != 0 && n % 10 != 0).map(|n| format!("F{n}")).collect();
    let store = ours.store();
    let conn = Connection::open(raw.database()).unwrap();
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL").unwrap();
    let caller = agent("a");
    let (mut by_us, mut by_hand) = (Vec::new(), Vec::new());
    for (number, block) in keys.chunks_exact(BLOCK).enumerate().take(BLOCKS) {
        let begun = Instant::now();
        for key in block {
            claim(store.as_ref(), &caller, key);
        }
        by_us.push(begun.elapsed());
        let begun = Instant::now();
        for (place, key) in block.iter().enumerate() {
            raw_claim(&conn, key, number * BLOCK + place);
        }
        by_hand.push(begun.elapsed());
    }
    let (us, hand) = (median(&mut by_us).as_secs_f64(), median(&mut by_hand).as_secs_f64());
    table.told("raw FULL commits of a claim's rows, per second", BLOCK as f64 / hand);
    table.at_least("claim rate ÷ raw FULL commits of the same rows", hand / us, 0.6);
}

/// `DATABASE KEY SECONDS`: claims and releases until the time is up, then says how often.
fn write_until_told(args: &[String]) -> ExitCode {
    let (store, key) = (open(Path::new(&args[0])), &args[1]);
    let caller = agent(key);
    // All begin at once: when the line on standard input comes.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let end = Instant::now() + Duration::from_secs(args[2].parse().unwrap());
    let mut count = 0_u64;
    while Instant::now() < end {
        claim(store.as_ref(), &caller, key);
        release(store.as_ref(), &caller, key);
        count += 1;
    }
    println!("{count}");
    ExitCode::SUCCESS
}

fn fairness(table: &mut Table, writers: usize) {
    eprintln!("{writers} writer processes");
    let project = Project::new();
    project.fill(3 * writers + 10);
    let keys = (1..).filter(|n| n % 3 != 0 && n % 10 != 0).take(writers).map(|n| format!("F{n}"));
    let mut children: Vec<Child> = keys
        .map(|key| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--writer", project.database().to_str().unwrap(), &key, "5"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let counts: Vec<f64> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        })
        .collect();
    let slowest = counts.iter().copied().fold(f64::MAX, f64::min);
    let fastest = counts.iter().copied().fold(0.0, f64::max);
    table.told(
        &format!("{writers} writers, transactions per second in all"),
        2.0 * counts.iter().sum::<f64>() / 5.0,
    );
    table.at_least(&format!("{writers} writers, slowest ÷ fastest share"), slowest / fastest, 0.25);
}

/// A waiter that stands in line for `key`.
fn waiter(project: &Project, store: &dyn Store, key: &str, name: &str) -> Child {
    let mut command = project.command(&["tasks", "claim", key, "--wait", "--agent", name]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while store.read(|view| view.count_tickets()).unwrap() == 0 {
        assert!(Instant::now() < deadline, "the waiter never stood in line");
        std::thread::sleep(Duration::from_millis(1));
    }
    // It has its place; give it the moment that it takes to fall asleep.
    std::thread::sleep(Duration::from_millis(5));
    child
}

/// Blocks until the waiter has said that the task is its own, and tells when that was.
fn answered(mut child: Child) -> Instant {
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let at = Instant::now();
    assert!(child.wait().unwrap().success());
    at
}

fn hand_over(table: &mut Table) {
    const RUNS: usize = 200;
    eprintln!("release → next waiter");
    let project = Project::new();
    project.fill(1);
    let store = project.store();
    claim(store.as_ref(), &agent("w0"), "F1");
    let mut times = Vec::new();
    for run in 0..RUNS {
        let next = waiter(&project, store.as_ref(), "F1", &format!("w{}", run + 1));
        release(store.as_ref(), &agent(&format!("w{run}")), "F1");
        let released = Instant::now();
        times.push(answered(next).saturating_duration_since(released));
    }
    table.at_most_when_idle("release → next waiter has it, p50, ms", millis(percentile(&mut times, 50)), 1.0);
    table.at_most_when_idle(
        "release → next waiter has it, p99, ms",
        millis(percentile(&mut times, 99)),
        10.0,
    );
}

fn take_over(table: &mut Table) {
    const RUNS: usize = 30;
    eprintln!("holder killed → waiter");
    let project = Project::new();
    project.fill(3 * RUNS);
    let store = project.store();
    let mut times = Vec::new();
    for run in 0..RUNS {
        let key = format!("F{}", 3 * run + 1 + usize::from((3 * run + 1).is_multiple_of(10)));
        let mut holder = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let process = ProcessIdentity::of(holder.id()).unwrap();
        let caller = agent("holder").with_process(Incarnation { process, hostname: tenure_lock::hostname() });
        claim(store.as_ref(), &caller, &key);
        let next = waiter(&project, store.as_ref(), &key, "next");
        let killed = Instant::now();
        holder.kill().unwrap();
        holder.wait().unwrap();
        times.push(answered(next).saturating_duration_since(killed));
    }
    table.at_most("holder killed → waiter has it, p50, ms", millis(percentile(&mut times, 50)), 1000.0);
    table.at_most("holder killed → waiter has it, worst, ms", millis(percentile(&mut times, 100)), 1000.0);
}

fn many_tasks(table: &mut Table) {
    const RUNS: usize = 60;
    eprintln!("1,000,000 tasks against 100");
    let (few, many) = (Project::new(), Project::new());
    few.fill(100);
    let begun = Instant::now();
    many.fill(1_000_000);
    eprintln!("  (filled in {:.1?})", begun.elapsed());
    for (what, args, budget) in [
        ("tasks next", &["tasks", "next"][..], Some(1.5)),
        ("tasks show", &["tasks", "show", "F50"], Some(1.5)),
        ("task next --claim", &["task", "next", "--claim", "--agent", "a"], Some(1.5)),
        ("tasks add", &["tasks", "add", "one more"], None),
        ("tasks list (first page)", &["tasks", "list"], None),
    ] {
        let (mut at_few, mut at_many) = (Vec::new(), Vec::new());
        let runs = if budget.is_some() { RUNS } else { 15 };
        for _ in 0..runs {
            at_few.push(cpu(few.command(args)));
            at_many.push(cpu(many.command(args)));
        }
        let ratio = median(&mut at_many).as_secs_f64() / median(&mut at_few).as_secs_f64();
        table.add(&format!("{what}: CPU at 1,000,000 ÷ at 100"), ratio, budget, false);
    }
}

/// A server and somebody who talks to it.
#[cfg(feature = "serve")]
struct Wire {
    child: Child,
    input: std::process::ChildStdin,
    output: std::io::BufReader<std::process::ChildStdout>,
}

#[cfg(feature = "serve")]
impl Wire {
    fn new(project: &Project) -> Self {
        let mut child =
            project.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut wire = Self { child, input, output: std::io::BufReader::new(output) };
        let client = json!({"name": "bench", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        wire.ask("initialize", &hello);
        wire
    }

    fn ask(&mut self, method: &str, params: &serde_json::Value) -> String {
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.output, &mut line).unwrap();
        line
    }

    fn call(&mut self, tool: &str, arguments: &serde_json::Value) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer.contains(r#""isError":false"#), "{answer}");
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// A claim over MCP beside the same transaction in this process.
#[cfg(feature = "serve")]
fn over_the_wire(table: &mut Table) {
    const CLAIMS: usize = 400;
    const STARTS: usize = 30;
    eprintln!("a server for MCP");
    let project = Project::new();
    project.fill(4 * CLAIMS);
    let starts = (0..STARTS).map(|_| {
        let begun = Instant::now();
        let wire = Wire::new(&project);
        let taken = begun.elapsed();
        wire.end();
        taken
    });
    let mut starts: Vec<Duration> = starts.collect();
    table.at_most_when_idle("MCP server, start to first answer, ms", millis(median(&mut starts)), 15.0);
    let mut keys = (1..).filter(|n| n % 3 != 0 && n % 10 != 0).map(|n| format!("F{n}"));
    let (store, caller) = (project.store(), agent("here").with_process(Incarnation::current()));
    let mut wire = Wire::new(&project);
    let (mut there, mut here) = (Vec::new(), Vec::new());
    for _ in 0..CLAIMS {
        let (one, other) = (keys.next().unwrap(), keys.next().unwrap());
        let begun = Instant::now();
        wire.call("claim_task", &json!({"task": one}));
        there.push(begun.elapsed());
        let begun = Instant::now();
        claim(store.as_ref(), &caller, &other);
        here.push(begun.elapsed());
    }
    let ratio = median(&mut there).as_secs_f64() / median(&mut here).as_secs_f64();
    table.told("claim transaction in this process, ms", millis(median(&mut here)));
    table.at_most("claim_task over MCP ÷ the same transaction", ratio, 3.0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", wire.child.id())).unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let resident: f64 = resident.split_whitespace().nth(1).unwrap().parse().unwrap();
    table.at_most("MCP server, resident, MB", resident / 1000.0, 15.0);
    wire.end();
}
