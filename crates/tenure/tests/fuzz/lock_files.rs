//! Exclusive and resume locks, which other tools write.

use tenure_lock::{
    EXCLUSIVE_LOCK_FILE, ExclusiveLock, ResumeLockError, ResumeLockManager, should_skip_database,
};

use crate::mutations::Corpus;

const WORDS: &[&str] = &[
    "\"pid\":",
    "\"tenure\":",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "{}",
    "\\u0000",
    "1970-01-01T00:00:00Z",
];
const FIXTURES: &str = "crates/tenure-lock/tests/behaviour/fixtures";

#[test]
fn an_exclusive_lock_that_can_be_read_is_written_as_it_was_read() {
    Corpus::of(&["fuzz/corpus/exclusive_lock", FIXTURES], WORDS).run("exclusive_lock", 20_000, |text| {
        let Ok(lock) = ExclusiveLock::parse(text) else { return };
        let written = lock.to_json().expect("what can be read can be written");
        let again = ExclusiveLock::parse(written.as_bytes()).expect("and read again");
        // A number of another tool may lose its last digits; its name stays.
        let names = |lock: &ExclusiveLock| lock.extra.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&again), names(&lock));
        let known = |lock: ExclusiveLock| ExclusiveLock { extra: serde_json::Map::new(), ..lock };
        assert_eq!(known(again), known(lock));
    });
}

#[test]
fn an_exclusive_lock_that_cannot_be_read_is_respected_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(EXCLUSIVE_LOCK_FILE);
    Corpus::of(&["fuzz/corpus/exclusive_lock", FIXTURES], WORDS).run("exclusive_lock_file", 1000, |text| {
        std::fs::write(&path, text).unwrap();
        let decision = should_skip_database(folder.path());
        if ExclusiveLock::parse(text).is_err() {
            assert!(decision.skip, "{decision:?}");
            assert_eq!(std::fs::read(&path).unwrap(), text, "it is not deleted");
        }
    });
}

#[test]
fn a_resume_lock_with_any_content_is_granted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(folder.path()).unwrap();
    // The path of the lock, as another holder's refusal names it.
    let held = manager.acquire("s").unwrap();
    let path = match manager.acquire("s") {
        Err(ResumeLockError::Held(held)) => held.path.clone(),
        other => panic!("{other:?}"),
    };
    drop(held);
    Corpus::of(&["fuzz/corpus/resume_lock", FIXTURES], WORDS).run("resume_lock", 1000, |text| {
        std::fs::write(&path, text).unwrap();
        let _ = manager.holder("s");
        if let Ok(lock) = manager.acquire("s") {
            assert!(manager.acquire("s").is_err(), "it has one holder");
            drop(lock);
        }
        let _ = std::fs::remove_file(&path);
    });
}
