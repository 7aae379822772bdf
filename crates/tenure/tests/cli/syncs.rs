//! What a command writes to the disk, and when, according to strace.

use std::process::{Command, Output};

use tenure_testkit::cli::{skip, until};

use crate::support::TestEnv;

/// The system calls of a command that open, write, sync, or close the files of a store, or send something, each with the names of its
/// files; `None` if processes cannot be traced here.
fn traced(env: &TestEnv, words: &[&str]) -> Option<Vec<String>> {
    trace(env, &[], words).map(|(calls, _)| calls)
}

/// [`traced`], with more options for strace, and what the command printed.
fn trace(env: &TestEnv, options: &[&str], words: &[&str]) -> Option<(Vec<String>, Output)> {
    let plain = env.process(words);
    let file = env.path("trace");
    let mut strace = Command::new("strace");
    let traced = "trace=openat,pwrite64,write,fsync,fdatasync,ftruncate,close,sendto";
    strace.args(["-f", "-qq", "-y", "-e", traced, "-o"]).arg(&file).args(options);
    strace.arg(plain.get_program()).args(plain.get_args()).env_clear();
    strace.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace.current_dir(plain.get_current_dir().unwrap());
    let output = strace.output().expect("there is no strace; ./test installs it");
    let calls = std::fs::read_to_string(file).unwrap_or_default();
    if calls.is_empty() {
        skip("strace may not trace a process here; the order of writes and syncs was not tested");
        return None;
    }
    let folder = env.path("work/.tenure").display().to_string();
    let is_seen =
        |call: &&str| call.contains(&folder) || call.contains(" write(1<") || call.contains(" sendto(");
    Some((calls.lines().filter(is_seen).map(str::to_owned).collect(), output))
}

fn project_with_tasks() -> TestEnv {
    let env = TestEnv::new();
    for words in [&["init"][..], &["tasks", "add", "one"], &["tasks", "add", "two"]] {
        env.process(words).output().unwrap();
    }
    env
}

fn is_sync_of_log(call: &str) -> bool {
    call.contains("sync(") && call.contains("db-wal>")
}

/// The commit of a command, after which the log is synced once, before the log is moved into the database.
struct Commit<'a> {
    calls: &'a [String],
}

impl Commit<'_> {
    fn first(&self, what: &str, on: &str) -> usize {
        let found = self.calls.iter().position(|call| call.contains(what) && call.contains(on));
        found.unwrap_or_else(|| panic!("no {what} {on}: {:#?}", self.calls))
    }

    /// The gate is closed.
    fn turn_ended(&self) -> usize {
        self.first("close(", "gate.lock>")
    }

    fn synced(&self) -> usize {
        let end = self.turn_ended();
        let after = self.calls[end..].iter().position(|call| is_sync_of_log(call));
        end + after.unwrap_or_else(|| panic!("no sync after the turn: {:#?}", self.calls))
    }
}

#[test]
fn the_name_of_a_new_log_is_on_the_disk_before_anything_is_written_to_it() {
    let env = TestEnv::new();
    let Some(calls) = traced(&env, &["init"]) else { return };
    let created = calls.iter().position(|call| call.contains("tenure.db-wal\", O_RDWR|O_CREAT")).unwrap();
    let after = &calls[created..];
    let first = |what: &str, on: &str| after.iter().position(|call| call.contains(what) && call.contains(on));
    let (named, written) = (first("sync(", "/.tenure>)"), first("pwrite64", "tenure.db-wal>"));
    assert!(named.is_some() && written.is_some() && named < written, "{calls:#?}");
}

#[test]
fn a_claim_overwrites_the_log_and_syncs_four_times() {
    let env = project_with_tasks();
    // The first one may make the log longer.
    for task in ["T1", "T2"] {
        let Some(calls) = traced(&env, &["tasks", "claim", task, "--agent", "a"]) else { return };
        let syncs: Vec<&String> = calls.iter().filter(|call| call.contains("sync(")).collect();
        assert_eq!(syncs.len(), 4, "the header of the log, the commit, the log, the database: {syncs:#?}");
        assert!(
            !calls.iter().any(|call| call.contains("ftruncate") && call.contains("db-wal>")),
            "{calls:#?}"
        );
    }
}

#[test]
fn a_commit_is_synced_after_its_turn_and_before_its_answer() {
    let env = project_with_tasks();
    let Some(calls) = traced(&env, &["tasks", "claim", "T1", "--agent", "a"]) else { return };
    let commit = Commit { calls: &calls };
    let written = calls[..commit.turn_ended()].iter().rposition(|call| call.contains("pwrite64("));
    assert!(written.is_some_and(|at| calls[at].contains("db-wal>")), "{calls:#?}");
    assert!(!calls[written.unwrap()..commit.turn_ended()].iter().any(|call| is_sync_of_log(call)));
    assert!(commit.synced() < commit.first(" write(1<", "T1"), "{calls:#?}");
}

#[test]
fn a_waiter_is_woken_before_the_commit_is_synced_and_its_ticket_is_not_synced() {
    let env = project_with_tasks();
    env.process(&["tasks", "claim", "T1", "--agent", "a"]).output().unwrap();
    // This one ends without the task.
    let wait = ["tasks", "claim", "T1", "--agent", "b", "--wait", "--timeout", "10ms"];
    let Some(calls) = traced(&env, &wait) else { return };
    let commit = Commit { calls: &calls };
    let written = commit.first("pwrite64(", "db-wal>");
    let moved = commit.first("pwrite64(", "tenure.db>");
    let syncs = |from: usize, to: usize| calls[from..to].iter().filter(|call| is_sync_of_log(call)).count();
    assert_eq!(syncs(written, moved), 2, "its header, and the log before it is moved: {calls:#?}");

    let wait = ["-q", "tasks", "claim", "T1", "--agent", "b", "--wait"];
    let mut waiter = env.process(&wait).spawn().unwrap();
    let database = rusqlite::Connection::open(env.path("work/.tenure/tenure.db")).unwrap();
    let tickets =
        || -> i64 { database.query_row("SELECT count(*) FROM tickets", [], |row| row.get(0)).unwrap() };
    until("it waits", || tickets() == 1);
    let calls = traced(&env, &["tasks", "release", "T1", "--agent", "a"]).unwrap();
    let commit = Commit { calls: &calls };
    let rung = commit.first(" sendto(", "tenure");
    assert!(commit.turn_ended() < rung && rung < commit.synced(), "{calls:#?}");
    assert!(waiter.wait().unwrap().success());
}

#[test]
fn an_answer_that_changed_nothing_is_synced() {
    let env = project_with_tasks();
    env.process(&["tasks", "claim", "T1", "--agent", "a"]).output().unwrap();
    let Some(calls) = traced(&env, &["tasks", "claim", "T1", "--agent", "b"]) else { return };
    let writes = |call: &String| call.contains("pwrite64(") && !call.contains("db-shm>");
    assert!(!calls.iter().any(writes), "{calls:#?}");
    assert_eq!(calls.iter().filter(|call| is_sync_of_log(call)).count(), 1, "{calls:#?}");
}

#[test]
fn a_commit_that_cannot_be_synced_is_reported_and_can_be_repeated() {
    let env = project_with_tasks();
    let log = env.path("work/.tenure/tenure.db-wal").display().to_string();
    // The first sync is that of the log's header, by SQLite.
    let failing = ["-P", &log, "-e", "inject=fdatasync:error=EIO:when=2"];
    let claim = ["tasks", "claim", "T1", "--agent", "a"];
    let Some((_, output)) = trace(&env, &failing, &claim) else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("a power failure may undo it"), "{said}");
    assert!(env.process(&claim).output().unwrap().status.success());
}
