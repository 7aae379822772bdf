//! What `docs/from-the-seeds.md` promises to users of steroids, beads, lodestar and prodigy: one case for each row that says
//! "run", and a check that every other row names a test, a reason, or that it is to be read.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use tenure_core::holder::Incarnation;

use crate::support::{Ran, TestEnv};

type Case = (&'static str, fn(&TestEnv));

/// Splits a command line at blanks outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn run(env: &TestEnv, line: &str) -> Ran {
    env.run(&words(line))
}

/// Runs a command that must exit with `code` and print all of `texts`.
fn prints(env: &TestEnv, line: &str, code: i32, texts: &[&str]) {
    let ran = run(env, line);
    assert_eq!(ran.code, code, "{ran}");
    for text in texts {
        assert!(ran.out.contains(text) || ran.err.contains(text), "{text:?} is not in:\n{ran}");
    }
}

fn ok(env: &TestEnv, line: &str) -> Ran {
    env.ok(&words(line))
}

/// The command exists with these arguments.
fn parses(line: &str) {
    let mut all = vec!["tenure".to_owned()];
    all.extend(words(line));
    tenure::command().try_get_matches_from(&all).unwrap_or_else(|e| panic!("{line}: {e}"));
}

fn setting(env: &TestEnv, key: &str, value: &str) {
    let answer = env.json(&["config", "get", key]).data();
    assert_eq!(answer["value"], value, "{key}: {answer}");
}

/// The rows that a query returns, each as its columns joined with `|`.
fn query(database: &Path, sql: &str) -> Vec<String> {
    let database = rusqlite::Connection::open(database).unwrap();
    let mut statement = database.prepare(sql).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cell = |at| row.get::<_, rusqlite::types::Value>(at).map(|value| format!("{value:?}"));
        (0..width).map(cell).collect::<Result<Vec<_>, _>>().map(|cells| cells.join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn columns(database: &Path, table: &str) -> Vec<String> {
    query(database, &format!("SELECT name FROM pragma_table_info('{table}')"))
}

fn claimed(env: &TestEnv) {
    ok(env, "tasks claim F001 --agent ann");
}

fn after_expiry(env: &TestEnv) {
    claimed(env);
    env.later(Duration::from_hours(1));
}

/// A runner of this project in the directory, which is this process.
fn with_runner(env: &TestEnv) {
    let database = rusqlite::Connection::open(env.path("home/.tenure/tenure.db")).unwrap();
    let process = serde_json::to_string(&Incarnation::current()).unwrap();
    let now = tenure_core::Clock::now(&*env.clock).as_millis();
    let log = env.write("home/.tenure/runners/logs/daemon-1.log", "[t1] second by text\n[t1] and first\n");
    database
        .execute(
            "INSERT INTO known_runners (id, status, process, project_path, log_path, started_at, heartbeat_at)
             VALUES ('a47dd5a7-0000-4000-8000-000000000000', 'running', ?1, ?2, ?3, ?4, ?4)",
            rusqlite::params![process, env.path("work").to_string_lossy(), log.to_string_lossy(), now],
        )
        .unwrap();
}

fn project_database(env: &TestEnv) -> std::path::PathBuf {
    env.path("work/.tenure/tenure.db")
}

fn directory(env: &TestEnv) -> std::path::PathBuf {
    env.path("home/.tenure/tenure.db")
}

const UPDATE: &str = "tasks update 'Fix bug' --status in_progress --agent bob";

/// Each begins in a new project with the pending task F001, "Fix bug".
#[rustfmt::skip]
const CASES: &[Case] = &[
    ("S0.4", |env| assert!(project_database(env).is_file())),
    ("S0.6", |env| { claimed(env); assert_eq!(query(&project_database(env), "SELECT * FROM task_locks").len(), 1); }),
    ("S0.8", |env| {
        ok(env, "sections add Backend");
        ok(env, "tasks add Second --id F002 --section Backend");
        ok(env, "tasks claim F002 --agent ann");
        assert_eq!(query(&project_database(env), "SELECT * FROM section_locks").len(), 1);
        assert_eq!(columns(&project_database(env), "section_locks").len(), 4);
    }),
    ("S0.10", |env| { claimed(env); prints(env, "tasks claim F001 --agent bob", 6, &["locked by agent ann"]); }),
    ("S0.11", |env| { claimed(env); prints(env, "tasks claim F001 --agent bob", 6, &[]); env.later(Duration::from_hours(1)); ok(env, "tasks claim F001 --agent bob"); }),
    ("S0.12", |env| { setting(env, "locking.taskTimeout", "60m"); after_expiry(env); ok(env, "tasks claim F001 --agent bob"); }),
    ("S0.13", |env| {
        for verb in ["done", "fail -m no"] {
            claimed(env);
            ok(env, &format!("tasks {verb} F001 --agent ann"));
            assert!(query(&project_database(env), "SELECT * FROM task_locks").is_empty());
            ok(env, "tasks update F001 --status pending --agent ann");
        }
    }),
    ("S0.33", |env| { claimed(env); prints(env, &format!("{UPDATE} --timeout 1s"), 9, &[]); }),
    ("S0.34", |env| { claimed(env); prints(env, &format!("{UPDATE} --timeout 1s"), 9, &["Task \"Fix bug\" is locked by another agent: ann."]); }),
    ("S0.35", |env| { claimed(env); prints(env, &format!("{UPDATE} --timeout 1s"), 9, &["Waiting for lock... (Ctrl+C to cancel)"]); }),
    ("S0.37", |env| prints(env, UPDATE, 0, &["Task \"Fix bug\" status updated to in_progress."])),
    ("S0.38", |env| { claimed(env); prints(env, &format!("{UPDATE} --no-wait"), 6, &["Error: Task \"Fix bug\" is locked by agent ann"]); }),
    ("S0.39", |env| { claimed(env); prints(env, &format!("{UPDATE} --no-wait"), 6, &["Lock expires at: 20"]); }),
    ("S0.40", |env| { claimed(env); prints(env, &format!("{UPDATE} --no-wait"), 6, &[]); }),
    ("S0.41", |env| { claimed(env); prints(env, &format!("{UPDATE} --no-wait"), 6, &["Exit code: 6 (LOCKED)"]); }),
    ("S0.42", |env| {
        claimed(env);
        let answer = env.json(&words(&format!("{UPDATE} --no-wait"))).envelope();
        assert_eq!((&answer["success"], &answer["error"]["code"]), (&false.into(), &"TASK_LOCKED".into()));
        assert!(answer["command"].as_str().unwrap().starts_with("tasks"));
    }),
    ("S0.44", |env| {
        claimed(env);
        let answer = env.json(&words(&format!("{UPDATE} --no-wait"))).envelope();
        for key in ["taskId", "lockedBy", "expiresAt"] {
            assert!(answer["error"]["details"][key].is_string(), "{key}: {answer}");
        }
    }),
    ("S0.45", |env| {
        env.write("home/.tenure/config.yaml", "locking:\n  _description: \"Task locking settings\"\n  waitTimeout:\n    _description: \"Max time to wait for lock\"\n    _default: \"30m\"\n    value: \"20m\"\n");
        prints(env, "config validate", 0, &[]);
        setting(env, "locking.waitTimeout", "20m");
    }),
    ("S0.46", |env| setting(env, "locking.taskTimeout", "60m")),
    ("S0.48", |env| setting(env, "locking.waitTimeout", "30m")),
    ("S0.50", |env| { claimed(env); prints(env, "locks list", 0, &["F001", "ann"]); }),
    ("S0.51", |env| { claimed(env); prints(env, "locks show F001", 0, &["ann"]); }),
    ("S0.53", |env| { after_expiry(env); prints(env, "locks cleanup", 0, &["F001"]); }),
    ("S0.54", |env| { claimed(env); prints(env, "tasks claim F001 --agent ann", 0, &["You already hold F001, since"]); }),
    ("S0.55", |env| { after_expiry(env); prints(env, "tasks claim F001 --agent bob", 0, &["taken over from agent ann"]); }),
    ("S0.56", |env| { claimed(env); prints(env, "tasks release F001 --agent bob", 8, &[]); }),
    ("S1.4", |env| { assert!(directory(env).is_file()); with_runner(env); assert!(env.path("home/.tenure/runners/logs").is_dir()); }),
    ("S1.5", |env| assert_eq!(columns(&directory(env), "runners").len(), 8)),
    ("S1.6", |env| assert_eq!(columns(&directory(env), "projects").len(), 5)),
    ("S1.7", |env| {
        with_runner(env);
        let sql = "SELECT id, status, project_path, current_task_id, datetime(heartbeat_at) as last_heartbeat FROM runners WHERE status = 'running'";
        assert_eq!(query(&directory(env), sql).len(), 1);
    }),
    ("S1.16", |env| setting(env, "runners.heartbeatInterval", "30s")),
    ("S1.17", |env| setting(env, "runners.staleTimeout", "5m")),
    ("S1.19", |env| { with_runner(env); prints(env, "runners list", 0, &["RUNNERS", "ID", "STATUS", "PID", "PROJECT", "SECTION", "HEARTBEAT"]); }),
    ("S1.20", |env| {
        with_runner(env);
        let ran = run(env, "runners list");
        assert_eq!(ran.out.lines().filter(|line| line.starts_with("────")).count(), 2, "{ran}");
    }),
    ("S1.21", |env| { with_runner(env); prints(env, "runners list", 0, &["a47dd5a7  running", "  -  "]); }),
    ("S1.24", |env| { with_runner(env); assert_eq!(env.json(&["runners", "list"]).data()["total"], 1); }),
    ("S1.26", |_| parses("runners start --project /path/to/project")),
    ("S1.27", |_| parses("runners start --task a1b2c3d4-e5f6-7890-abcd-ef1234567890")),
    ("S1.28", |_| parses("runners stop f47ac10b-58cc-4372-a567-0e02b2c3d479")),
    ("S1.29", |_| parses("runners stop --all")),
    ("S1.30", |_| parses("runners stop --force")),
    ("S1.31", |_| parses("runners wakeup")),
    ("S1.36", |env| { with_runner(env); prints(env, "runners logs a47dd5a7", 0, &["second by text"]); }),
    ("S1.37", |_| parses("runners logs f47ac10b-58cc-4372-a567-0e02b2c3d479 --follow")),
    ("S1.38", |env| {
        with_runner(env);
        let ran = ok(env, "runners logs --all --limit 100");
        let place = |text| ran.out.find(text).unwrap_or_else(|| panic!("{text}: {ran}"));
        assert!(place("second by text") < place("and first"), "{ran}");
    }),
    ("S1.39", |env| {
        with_runner(env);
        let runner = env.json(&["runners", "list"]).data()["runners"][0].clone();
        for key in ["id", "status", "projectPath", "currentTask", "startedAt", "completedAt", "lastHeartbeat", "pid", "error"] {
            assert!(runner.as_object().unwrap().contains_key(key), "{key}: {runner}");
        }
    }),
    ("S1.41", |env| {
        ok(env, "tasks update F001 --source docs/SPEC.md#authentication");
        assert_eq!(env.json(&["tasks", "show", "F001"]).data()["task"]["sourceFile"], "docs/SPEC.md#authentication");
    }),
    ("S1.44", |_| parses("runners start --ttl 30m")),
    ("S1.50", |env| setting(env, "runners.subprocessHangTimeout", "15m")),
    ("S1.51", |env| assert_eq!(env.json(&["config", "get", "runners.maxConcurrent"]).data()["value"], 1)),
    ("S1.52", |env| setting(env, "runners.logRetention", "7d")),
    ("S1.53", |env| setting(env, "runners.wakeup.checkInterval", "1m")),
    ("S1.56", |env| setting(env, "runners.subprocessHangTimeout", "15m")),
    ("S3.1", |env| prints(env, "task claim F001 --agent A1234ABCD", 0, &[])),
    ("S3.2", |env| prints(env, "task claim F001 --agent A1234ABCD", 0, &["Claimed task F001\n", "  Lease: L", "  Expires in: 15m\n"])),
    ("S3.3", |env| prints(env, "task claim F001 --agent A1234ABCD", 0, &["Remember to:\n  - Renew with tenure task renew F001", "  - Mark done with tenure task done F001"])),
    ("S3.5", |env| {
        let lease = env.json(&["task", "claim", "F001", "--agent", "A1234ABCD"]).data()["lease"].clone();
        assert!(lease["leaseId"].is_string() && lease["taskId"].is_string() && lease["expiresAt"].is_string());
        assert_eq!(lease["holder"]["id"], "A1234ABCD");
    }),
    ("S3.6", |env| { after_expiry(env); prints(env, "tasks list --ready", 0, &["F001"]); }),
    ("S3.7", |env| { after_expiry(env); ok(env, "tasks claim F001 --agent bob"); }),
    ("S3.8", |env| { after_expiry(env); prints(env, "tasks renew F001 --agent ann", 8, &[]); }),
    ("S3.10", |env| { claimed(env); prints(env, "task renew F001 --agent ann", 0, &["Renewed lease for F001\n  Expires in: 15m"]); }),
    ("S3.11", |env| { claimed(env); prints(env, "task release F001 --agent ann", 0, &["Released task F001"]); }),
    ("S3.12", |env| prints(env, "msg send --task F001 --from A1234ABCD --text 'Released: blocked on API credentials'", 0, &[])),
    ("S3.13", |env| {
        ok(env, "msg send --task F001 --from A1234ABCD --text 'Released: blocked on API credentials'");
        prints(env, "task next --claim --agent bob", 0, &["from A1234ABCD", "Released: blocked on API credentials"]);
    }),
    ("S3.15", |env| prints(env, "task claim F001 --agent A1234ABCD --ttl 1h", 0, &["Expires in: 1h"])),
    ("S3.16", |_| {
        let mut env = TestEnv::project();
        env.set("TENURE_LEASE_TTL", "30m");
        ok(&env, "tasks add One --id F001");
        prints(&env, "task claim F001 --agent A1234ABCD", 0, &["Expires in: 30m"]);
    }),
    ("S3.18", |env| { claimed(env); ok(env, "tasks release F001 --agent ann"); prints(env, "locks show F001 --history", 0, &["released"]); }),
    ("S3.20", |env| { claimed(env); prints(env, "status", 0, &["Runtime\n", "Agents registered: 1", "Active claims: 1"]); }),
    ("S3.21", |env| { claimed(env); prints(env, "task show F001", 0, &["F001 - Fix bug\n", "Lease expires: 15m remaining"]); }),
    ("S3.23", |env| { claimed(env); prints(env, "task show F001", 0, &["Claimed by: agent ann"]); }),
    ("S3.24", |env| { claimed(env); prints(env, "task done F001 --agent ann", 0, &["Marked F001 done"]); }),
];

#[test]
fn what_the_page_for_users_of_the_other_tools_promises_is_true() {
    let mut wrong = Vec::new();
    for (id, case) in CASES {
        let env = TestEnv::project();
        ok(&env, "tasks add 'Fix bug' --id F001");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(&env)));
        wrong.extend(outcome.is_err().then_some(*id));
    }
    assert!(wrong.is_empty(), "not as the page says: {wrong:?}");
}

/// The bar is drawn at a terminal only.
#[test]
fn a_waiter_at_a_terminal_sees_the_bar() {
    let mut env = TestEnv::project();
    ok(&env, "tasks add 'Fix bug' --id F001");
    claimed(&env);
    env.on_terminal = true;
    prints(&env, &format!("{UPDATE} --timeout 1s"), 9, &["] 0s elapsed"]);
}

fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every function of every Rust file below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                functions(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_row_of_the_page_has_a_case_a_test_a_reason_or_is_to_read() {
    let page = std::fs::read_to_string(repository().join("docs/from-the-seeds.md")).unwrap();
    let mut tests = BTreeSet::new();
    functions(&repository().join("crates"), &mut tests);
    let mut cases: BTreeSet<&str> = CASES.iter().map(|(id, _)| *id).collect();
    assert_eq!(cases.len(), CASES.len(), "a number occurs twice");
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| S")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let (id, shown) = (cells[0], *cells.last().unwrap());
        assert_eq!(cells.len(), 4, "{line}");
        rows += 1;
        let named = shown.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        let known = match named {
            Some(test) => tests.contains(test),
            None if shown == "run" => cases.remove(id),
            None => shown == "to read" || shown.strip_prefix("by design: ").is_some_and(|why| why.len() > 10),
        };
        assert!(known, "{line}");
    }
    assert!(cases.is_empty(), "cases without a row that says \"run\": {cases:?}");
    assert!(rows >= 200, "{rows} rows");
}
