//! The exact log lines.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use tenure_lock::{EXCLUSIVE_LOCK_FILE, hostname, should_skip_database};

use super::{Fixture, NO_PID, foreign_resume, removed_files_keep_their_names};

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One subscriber for all tests, because a scoped one misses events whose call sites were first reached by other
/// threads. Each thread reads only its own lines.
struct ThreadLog;

impl Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(work: impl FnOnce()) -> Vec<String> {
    static SUBSCRIBE: Once = Once::new();
    SUBSCRIBE.call_once(|| {
        tracing_subscriber::fmt()
            .with_writer(|| ThreadLog)
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .init();
    });
    LOG.take();
    work();
    String::from_utf8(LOG.take()).unwrap().lines().map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn acquiring_and_releasing_are_logged() {
    let fixture = Fixture::new();
    let lines = logged(|| drop(fixture.manager.acquire("job").unwrap()));
    assert_eq!(lines, ["INFO Acquired resume lock for job", "INFO Released resume lock for job"]);
}

#[test]
fn a_stale_lock_is_logged_with_its_pid() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("job"), foreign_resume(NO_PID, &hostname())).unwrap();
    let lines = logged(|| std::mem::forget(fixture.manager.acquire("job").unwrap()));
    assert_eq!(lines[0], format!("WARN Removing stale lock for job (PID {NO_PID} no longer running)"));
    assert_eq!(lines[1], "INFO Acquired resume lock for job");
}

#[test]
fn a_failed_release_is_logged() {
    if removed_files_keep_their_names("a_failed_release_is_logged") {
        return;
    }
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    std::fs::remove_file(lock.path()).unwrap();
    let lines = logged(|| drop(lock));
    assert_eq!(
        lines,
        ["WARN Failed to release lock for job: Lock for job is lost: the lock file was removed"]
    );
}

#[test]
fn a_daemon_logs_its_decision_in_the_documented_wording() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(EXCLUSIVE_LOCK_FILE);
    let lock = |holder: &str, pid: u32| {
        format!(
            r#"{{"holder":"{holder}","pid":{pid},"hostname":"{}","started_at":"2025-10-25T12:00:00Z"}}"#,
            hostname()
        )
    };
    let check = || {
        let lines = logged(|| {
            should_skip_database(dir.path());
        });
        lines.join("\n")
    };
    assert_eq!(check(), "");
    std::fs::write(&path, lock("vc-executor", std::process::id())).unwrap();
    assert_eq!(check(), "INFO Skipping database (locked by vc-executor)");
    std::fs::write(&path, lock("vc-executor", NO_PID)).unwrap();
    assert_eq!(check(), "INFO Removed stale lock (vc-executor), proceeding with sync");
    assert_eq!(check(), "");
    std::fs::write(&path, "{").unwrap();
    assert_eq!(check(), "INFO Skipping database (lock check failed: malformed lock file: unexpected EOF)");
}
