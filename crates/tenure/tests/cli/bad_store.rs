//! Damaged and foreign databases: one clear error, and the damage is not made worse.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tenure_testkit::SmallDisk;

use tenure_testkit::cli::skip;

use crate::story::steps;
use crate::support::{Ran, TestEnv};

const DATABASE: &str = "work/.tenure/tenure.db";

/// A project with a few tasks, all of them in the database file itself.
fn checkpointed() -> TestEnv {
    let env = TestEnv::project();
    for n in 1..=50 {
        env.ok(&["tasks", "add", &format!("Task {n}"), "-d", &"x".repeat(2000)]);
    }
    let conn = rusqlite::Connection::open(env.path(DATABASE)).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    env
}

/// Asserts that reading and writing both fail with this error, and leave the database unchanged.
fn assert_refuses(env: &TestEnv, exit: i32, code: &str, says: &str) {
    let before = std::fs::read(env.path(DATABASE)).ok();
    for words in [
        &["tasks"][..],
        &["tasks", "add", "New"],
        &["tasks", "show", "T1"],
        &["status"],
        &["locks", "cleanup"],
    ] {
        let ran = env.run(words);
        assert_eq!(ran.code, exit, "{ran}");
        assert_eq!(ran.err.matches("Error:").count(), 1, "{ran}");
        assert!(ran.err.contains(says) && !ran.err.contains("panicked"), "{ran}");
        assert_eq!(env.json(words).error_code(), code);
    }
    assert_eq!(std::fs::read(env.path(DATABASE)).ok(), before);
}

#[test]
fn a_truncated_database_is_reported_as_damaged() {
    let env = checkpointed();
    let bytes = std::fs::read(env.path(DATABASE)).unwrap();
    std::fs::write(env.path(DATABASE), &bytes[..bytes.len() / 8]).unwrap();
    for words in [&["tasks"][..], &["tasks", "add", "New"]] {
        let ran = env.run(words).exits(1);
        assert!(ran.err.contains("damaged"), "{ran}");
        assert_eq!(env.json(words).error_code(), "STORE_ERROR");
    }
    std::fs::write(env.path(DATABASE), &bytes[..100]).unwrap();
    let ran = env.run(&["tasks"]).exits(1);
    assert!(ran.err.contains("damaged") || ran.err.contains("not a database"), "{ran}");
}

#[test]
fn an_empty_database_is_refused_and_not_initialised() {
    let env = checkpointed();
    std::fs::write(env.path(DATABASE), "").unwrap();
    assert_refuses(&env, 1, "STORE_ERROR", "empty");
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_not_changed() {
    let env = TestEnv::new();
    env.write(DATABASE, "this is a text file, and quite a long one at that\n".repeat(100));
    assert_refuses(&env, 1, "STORE_ERROR", "not a database");
    env.run(&["init"]).exits(1);
}

#[test]
fn the_database_of_another_program_is_refused_and_not_changed() {
    for version in [0, 1, 7] {
        let env = TestEnv::new();
        std::fs::create_dir(env.path("work/.tenure")).unwrap();
        let conn = rusqlite::Connection::open(env.path(DATABASE)).unwrap();
        conn.execute_batch(&format!("CREATE TABLE songs (name TEXT); PRAGMA user_version = {version};"))
            .unwrap();
        drop(conn);
        assert_refuses(&env, 1, "STORE_ERROR", "another program");
        env.run(&["init"]).exits(1);
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_not_changed() {
    let env = checkpointed();
    let conn = rusqlite::Connection::open(env.path(DATABASE)).unwrap();
    conn.execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    drop(conn);
    assert_refuses(&env, 3, "STORE_TOO_NEW", "newer tenure");
    env.run(&["init"]).exits(3);
}

#[test]
fn a_folder_in_place_of_the_database_is_reported() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.path(DATABASE)).unwrap();
    assert_refuses(&env, 1, "STORE_ERROR", "directory");
    env.run(&["init"]).exits(1);
}

#[test]
fn a_broken_registry_affects_only_its_own_commands() {
    let env = TestEnv::project();
    // Otherwise the latest rows would be found in the write-ahead log.
    for side in ["-wal", "-shm"] {
        std::fs::remove_file(env.path(&format!("home/.tenure/tenure.db{side}"))).unwrap();
    }
    env.write("home/.tenure/tenure.db", "no database".repeat(1000));
    steps(&env, &["tasks add One", "tasks claim T1 --agent bob", "tasks done T1 --agent bob", "status"]);
    env.run(&["projects", "list"]).exits(1);
    let ran = env.ok(&["init"]);
    assert!(ran.err.contains("not registered"), "{ran}");
}

/// A process that holds a lock until it is killed on drop.
struct Holder(Child);

impl Holder {
    fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this test binary as another process that runs one of the `#[ignore]`d tests below.
fn another_process(env: &TestEnv, name: &str) -> Holder {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture", "--quiet"]);
    command.env("TENURE_TEST_HOLD", env.path("work/.tenure"));
    // The test harness prints its own lines first.
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(
        lines.lines().map_while(Result::ok).any(|line| line.contains("held")),
        "{name} never held anything"
    );
    Holder(child)
}

/// Prints that the lock is held, and waits until standard input is closed or the process is killed.
fn hold() {
    // Not `println!`, which the harness captures.
    std::io::stdout().write_all(b"\nheld\n").unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn folder_to_hold() -> Option<std::path::PathBuf> {
    std::env::var_os("TENURE_TEST_HOLD").map(Into::into)
}

#[test]
#[ignore = "not a test: the other process of a test below"]
fn hold_a_transaction() {
    let Some(folder) = folder_to_hold() else { return };
    let conn = rusqlite::Connection::open(folder.join("tenure.db")).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    hold();
}

/// A command that waits longer than this ignores `--timeout`.
const LONG: Duration = Duration::from_secs(8);

fn assert_fails_soon(env: &TestEnv, words: &[&str], says: &str) -> Ran {
    let begun = Instant::now();
    let ran = env.json(words).exits(1);
    assert!(begun.elapsed() < LONG, "{ran}");
    assert_eq!(ran.error_code(), "STORE_ERROR", "{ran}");
    assert!(ran.message().contains(says), "{ran}");
    ran
}

#[test]
fn a_process_that_blocks_the_gate_is_named_and_reading_still_works() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let gate = env.path("work/.tenure/tenure.gate.lock");
    let mut command = std::process::Command::new("flock");
    command.arg(&gate).args(["sh", "-c", "echo held; cat"]);
    if std::process::Command::new("flock").arg("--version").output().is_err() {
        skip("there is no `flock` command to hold the gate with");
        return;
    }
    let holder = Holder::start(command);
    let ran = assert_fails_soon(&env, &["tasks", "add", "Two", "--timeout", "100ms"], "has kept the store");
    assert!(ran.message().contains("process "), "the holder is named: {ran}");
    assert_eq!(env.json(&["tasks"]).exits(0).data()["total"], 1, "reading does not need the gate");
    drop(holder);
    steps(&env, &["tasks add Two"]);
}

#[test]
fn the_wait_for_another_programs_transaction_is_bounded() {
    let env = TestEnv::project();
    steps(&env, &["tasks add One"]);
    let holder = another_process(&env, "bad_store::hold_a_transaction");
    assert_fails_soon(
        &env,
        &["tasks", "add", "Two", "--timeout", "100ms"],
        "the database is locked by another program",
    );
    assert_fails_soon(&env, &["tasks", "claim", "T1", "--agent", "bob", "--timeout", "100ms"], "locked");
    assert_eq!(env.json(&["tasks"]).exits(0).data()["total"], 1, "reading still works");
    drop(holder);
    steps(&env, &["tasks add Two"]);
    assert_eq!(env.json(&["tasks"]).data()["total"], 2);
}

#[test]
fn on_a_full_disk_writes_are_refused_and_nothing_is_lost() {
    let mut env = TestEnv::new();
    let Some(disk) = SmallDisk::mount(&env.path("disk"), 2048) else {
        skip("mounting a small file system needs root; the full disk was not tested");
        return;
    };
    env.cd("disk");
    let filler = disk.fill();
    let ran = env.json(&["init"]).exits(1);
    assert!(ran.message().contains("disk is full"), "{ran}");
    std::fs::remove_file(&filler).unwrap();
    env.ok(&["init"]);
    env.ok(&["tasks", "add", "Before"]);
    let mut added = 1;
    let refused = loop {
        let ran = env.json(&["tasks", "add", "More", "-d", &"x".repeat(20_000)]);
        if ran.code != 0 {
            break ran;
        }
        added += 1;
        assert!(added < 1000, "the disk never became full");
    };
    assert_eq!((refused.code, refused.error_code().as_str()), (1, "STORE_ERROR"), "{refused}");
    assert!(refused.message().contains("disk is full"), "{refused}");
    let list = env.json(&["tasks"]).exits(0).data();
    assert_eq!(list["total"], added, "every acknowledged task is there, and nothing else");
    assert_eq!(env.json(&["tasks", "show", "Before"]).exits(0).data()["task"]["key"], "T1");
    let config = std::fs::read(env.path("disk/.tenure/config.yaml")).unwrap();
    disk.fill();
    let ran = env.json(&["config", "set", "project.name", &"n".repeat(400)]);
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.message().contains("disk is full"), "{ran}");
    assert_eq!(std::fs::read(env.path("disk/.tenure/config.yaml")).unwrap(), config);
    drop(disk);
}
