//! Exclusive locks: the meaning of each content, which process gets the lock, and what is kept.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_lock::{
    EXCLUSIVE_LOCK_FILE, ExclusiveError, ExclusiveLock, ExclusiveStatus, Liveness, Release, SkipReason,
    hostname, is_process_alive, should_skip_database,
};

use super::{NO_PID, list};

fn fields(pid: u32, hostname: &str) -> Value {
    json!({
        "holder": "vc-executor", "pid": pid, "hostname": hostname, "started_at": "2025-10-25T12:00:00Z",
        "version": "1.0.0"
    })
}

fn with_file(text: impl AsRef<[u8]>) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(EXCLUSIVE_LOCK_FILE), text).unwrap();
    dir
}

fn why(value: &Value) -> String {
    ExclusiveLock::parse(value.to_string().as_bytes()).unwrap_err().why
}

fn file_exists(dir: &Path) -> bool {
    dir.join(EXCLUSIVE_LOCK_FILE).exists()
}

#[test]
fn required_fields_are_checked_in_order() {
    let mut value = json!({});
    for (name, good) in [
        ("holder", json!("t")),
        ("pid", json!(7)),
        ("hostname", json!("h")),
        ("started_at", json!("2025-10-25T12:00:00Z")),
    ] {
        assert_eq!(why(&value), format!("{name} is missing"));
        value[name] = Value::Null;
        assert_eq!(why(&value), format!("{name} is missing"));
        if name != "pid" {
            value[name] = json!("");
            assert_eq!(why(&value), format!("{name} is empty"));
            value[name] = json!(5);
            assert_eq!(why(&value), format!("{name} is not a text"));
        }
        value[name] = good;
    }
    ExclusiveLock::parse(value.to_string().as_bytes()).unwrap();
}

#[test]
fn a_number_that_is_not_a_pid_is_malformed() {
    for pid in [json!(0), json!(-5), json!("7"), json!(7.5), json!(1e300), json!(u64::MAX)] {
        let mut value = fields(1, "h");
        value["pid"] = pid.clone();
        assert!(why(&value).starts_with("pid "), "{pid}");
    }
}

#[test]
fn an_invalid_time_is_malformed() {
    for time in ["yesterday", "2025-13-01T00:00:00Z", "0001-01-01T00:00:00Z", "2025-10-25"] {
        let mut value = fields(1, "h");
        value["started_at"] = json!(time);
        assert!(why(&value).starts_with("started_at "), "{time}");
    }
}

#[test]
fn new_creates_a_valid_lock_and_validate_reports_missing_fields() {
    let lock = ExclusiveLock::new("tool", "1.0.0");
    lock.validate().unwrap();
    assert_eq!((lock.pid, lock.hostname.as_str()), (std::process::id().into(), hostname().as_str()));
    let broken = ExclusiveLock { holder: String::new(), pid: 0, hostname: String::new(), ..lock.clone() };
    assert_eq!(broken.validate().unwrap_err().why, "holder is empty");
    assert_eq!(
        ExclusiveLock { pid: -1, ..lock.clone() }.validate().unwrap_err().why,
        "pid -1 is not positive"
    );
    assert_eq!(
        ExclusiveLock { hostname: String::new(), ..lock }.validate().unwrap_err().why,
        "hostname is empty"
    );
}

#[test]
fn the_version_may_be_missing_and_unknown_fields_are_kept() {
    let mut value = fields(7, "h");
    value.as_object_mut().unwrap().shift_remove("version");
    value["colour"] = json!({"of": ["money", 1]});
    let lock = ExclusiveLock::parse(value.to_string().as_bytes()).unwrap();
    assert_eq!(lock.version, None);
    assert_eq!(serde_json::from_str::<Value>(&lock.to_json().unwrap()).unwrap(), value);
}

#[test]
fn the_shell_and_go_examples_are_accepted() {
    let shell = "{\n\"holder\": \"my-tool\",\n\"pid\": 4711,\n\"hostname\": \"dev\",\n\"started_at\": \
                 \"2025-10-25T12:00:00Z\",\n\"version\": \"1.0.0\"\n}\n";
    let go = r#"{"holder":"my-tool","pid":4711,"hostname":"dev","started_at":"2025-10-25T12:00:00.123456789+02:00","version":""}"#;
    for text in [shell, go] {
        assert_eq!(ExclusiveLock::parse(text.as_bytes()).unwrap().holder, "my-tool");
    }
}

#[test]
fn without_a_lock_a_daemon_proceeds() {
    let dir = tempfile::tempdir().unwrap();
    let decision = should_skip_database(dir.path());
    assert_eq!((decision.skip, decision.holder, decision.reason), (false, None, SkipReason::NoLock));
    assert!(!should_skip_database(dir.path().join("missing")).skip);
    assert!(list(dir.path()).is_empty(), "a check leaves nothing behind");
}

#[test]
fn a_live_or_remote_holder_makes_a_daemon_skip() {
    let mut holders = vec![(std::process::id(), hostname()), (NO_PID, "another-host".into())];
    // The first process, which belongs to another user.
    holders.extend(cfg!(unix).then(|| (1, hostname())));
    for (pid, host) in holders {
        let dir = with_file(fields(pid, &host).to_string());
        let decision = should_skip_database(dir.path());
        assert!(decision.skip);
        assert_eq!(decision.holder.as_deref(), Some("vc-executor"));
        assert_eq!(decision.log_line().unwrap(), "Skipping database (locked by vc-executor)");
        assert!(file_exists(dir.path()));
    }
}

#[test]
fn a_dead_holders_lock_is_removed_whatever_the_case_of_the_hostname() {
    for host in [hostname(), hostname().to_uppercase()] {
        let dir = with_file(fields(NO_PID, &host).to_string());
        let decision = should_skip_database(dir.path());
        assert_eq!((decision.skip, &decision.reason), (false, &SkipReason::RemovedStale));
        assert_eq!(decision.to_string(), "Removed stale lock (vc-executor), proceeding with sync");
        assert!(list(dir.path()).is_empty());
    }
}

#[test]
fn malformed_empty_truncated_huge_and_binary_files_are_skipped_and_never_removed() {
    let whole = fields(NO_PID, &hostname()).to_string();
    let mut huge = whole.clone().into_bytes();
    huge.resize(1 << 20, b' ');
    let mut incomplete = fields(NO_PID, &hostname());
    incomplete.as_object_mut().unwrap().shift_remove("hostname");
    for (text, why) in [
        (b"".to_vec(), "unexpected EOF"),
        (whole.as_bytes()[..40].to_vec(), "unexpected EOF"),
        (incomplete.to_string().into_bytes(), "hostname is missing"),
        (b"[]".to_vec(), "it is not a JSON object"),
        (huge, "it is too large"),
        ((0..=255).collect(), "expected value at line 1 column 1"),
    ] {
        let dir = with_file(&text);
        let decision = should_skip_database(dir.path());
        assert!(decision.skip);
        let line = format!("Skipping database (lock check failed: malformed lock file: {why})");
        assert_eq!(decision.log_line().unwrap(), line);
        assert!(matches!(ExclusiveLock::acquire(dir.path(), "t", ""), Err(ExclusiveError::Malformed { .. })));
        assert!(matches!(ExclusiveLock::release_for(dir.path(), 1), Err(ExclusiveError::Malformed { .. })));
        assert_eq!(std::fs::read(dir.path().join(EXCLUSIVE_LOCK_FILE)).unwrap(), text);
        assert_eq!(list(dir.path()), [EXCLUSIVE_LOCK_FILE]);
    }
}

#[cfg(unix)]
#[test]
fn a_symlink_or_directory_instead_of_the_lock_means_skip_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(EXCLUSIVE_LOCK_FILE);
    let target = dir.path().join("target");
    std::fs::write(&target, fields(NO_PID, &hostname()).to_string()).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let decision = should_skip_database(dir.path());
    assert!(decision.skip && matches!(decision.reason, SkipReason::CheckFailed(_)), "{decision:?}");
    assert!(ExclusiveLock::acquire(dir.path(), "t", "").is_err());
    assert_eq!(list(dir.path()), [EXCLUSIVE_LOCK_FILE, "target"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(should_skip_database(dir.path()).skip);
    assert!(path.is_dir());
}

#[test]
fn one_tool_holds_the_lock_at_a_time_and_the_refusal_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let guard = ExclusiveLock::acquire(dir.path(), "first", "1.0.0").unwrap();
    match ExclusiveLock::acquire(dir.path(), "second", "1.0.0") {
        Err(ExclusiveError::Held(held)) => {
            assert_eq!(&held.lock, guard.lock());
            assert_eq!(held.liveness, Liveness::Alive);
            let words = ExclusiveError::Held(held).to_string();
            assert!(
                words.contains(&format!("first (PID {} on {}", std::process::id(), hostname())),
                "{words}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(guard.is_held());
    assert_eq!(guard.release().unwrap(), Release::Removed);
    assert!(list(dir.path()).is_empty(), "nothing is left behind");
}

#[test]
fn a_lock_taken_for_another_process_ends_with_that_process() {
    let dir = tempfile::tempdir().unwrap();
    let words: &[&str] = if cfg!(windows) { &["cmd", "/c", "pause"] } else { &["sleep", "600"] };
    let mut shell = std::process::Command::new(words[0]);
    let mut shell = shell.args(&words[1..]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let lock = ExclusiveLock::acquire_for(dir.path(), "shell", "", shell.id()).unwrap();
    assert_eq!(lock.liveness(), Liveness::Alive);
    assert!(matches!(
        ExclusiveLock::release_for(dir.path(), std::process::id()).unwrap(),
        Release::NotOurs(_)
    ));
    assert!(should_skip_database(dir.path()).skip);
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(matches!(ExclusiveLock::status(dir.path()).unwrap(), ExclusiveStatus::Stale { .. }));
    assert_eq!(should_skip_database(dir.path()).reason, SkipReason::RemovedStale);
    let pid = shell.id();
    assert!(matches!(
        ExclusiveLock::acquire_for(dir.path(), "shell", "", pid),
        Err(ExclusiveError::NoSuchProcess { pid: refused }) if refused == pid
    ));
}

#[test]
fn a_process_releases_its_own_lock_even_if_it_is_hand_written() {
    let me = std::process::id();
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(ExclusiveLock::release_for(dir.path(), me).unwrap(), Release::NotThere);
    ExclusiveLock::acquire_for(dir.path(), "t", "", me).unwrap();
    assert_eq!(ExclusiveLock::release_for(dir.path(), me).unwrap(), Release::Removed);
    let dir = with_file(fields(me, &hostname()).to_string());
    assert_eq!(ExclusiveLock::release_for(dir.path(), me).unwrap(), Release::Removed);
    let dir = with_file(fields(me, "another-host").to_string());
    assert!(matches!(ExclusiveLock::release_for(dir.path(), me).unwrap(), Release::NotOurs(_)));
}

#[test]
fn a_guard_keeps_a_lock_that_is_not_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let guard = ExclusiveLock::acquire(dir.path(), "first", "").unwrap();
    let other = fields(1, "another-host").to_string();
    std::fs::write(dir.path().join(EXCLUSIVE_LOCK_FILE), &other).unwrap();
    assert!(!guard.is_held());
    assert!(matches!(guard.release().unwrap(), Release::NotOurs(_)));
    assert_eq!(std::fs::read_to_string(dir.path().join(EXCLUSIVE_LOCK_FILE)).unwrap(), other);
}

#[test]
fn a_recycled_pid_does_not_keep_a_lock_alive() {
    let mut lock = ExclusiveLock::new("t", "");
    lock.tenure.as_mut().unwrap().identity.start_time += 1;
    assert_eq!(lock.liveness(), Liveness::Dead);
    let dir = with_file(lock.to_json().unwrap());
    assert_eq!(should_skip_database(dir.path()).reason, SkipReason::RemovedStale);
}

#[test]
fn an_invalid_lock_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(ExclusiveLock::acquire(dir.path(), "", ""), Err(ExclusiveError::Invalid(_))));
    assert!(list(dir.path()).is_empty());
}

#[test]
fn remote_processes_are_assumed_alive_and_numbers_that_are_not_pids_never_are() {
    assert!(is_process_alive(std::process::id().into(), &hostname()));
    assert!(is_process_alive(NO_PID.into(), "another-host"));
    assert!(!is_process_alive(NO_PID.into(), &hostname().to_uppercase()));
    for pid in [0, -1, i64::MIN, i64::MAX] {
        assert!(!is_process_alive(pid, &hostname()), "{pid}");
    }
    assert!(!is_process_alive(0, "another-host"));
}

proptest! {
    #[test]
    fn any_content_is_read_without_panic_and_only_a_dead_holders_file_is_removed(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            ("[a-z]{0,5}", any::<i64>(), "[a-z]{0,6}", "[0-9TZ:.-]{0,22}|2025-10-25T12:00:00Z").prop_map(
                |(holder, pid, host, at)| json!({
                    "holder": holder, "pid": pid, "hostname": host, "started_at": at
                }).to_string().into_bytes()),
        ],
    ) {
        let dir = with_file(&bytes);
        let decision = should_skip_database(dir.path());
        let removed = !file_exists(dir.path());
        prop_assert_eq!(removed, decision.reason == SkipReason::RemovedStale);
        prop_assert!(decision.skip || removed);
        if let Ok(lock) = ExclusiveLock::parse(&bytes) {
            prop_assert_eq!(ExclusiveLock::parse(lock.to_json().unwrap().as_bytes()).unwrap(), lock);
        }
    }
}
