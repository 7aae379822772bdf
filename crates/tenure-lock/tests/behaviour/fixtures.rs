//! Lock files as written by released versions and other tools. They must stay readable.

use tenure_lock::{ExclusiveLock, Liveness, ResumeLockData, ResumeLockError};

use super::Fixture;

#[test]
fn resume_locks_of_every_version_are_read_and_honoured() {
    for (text, ours) in [
        (include_str!("fixtures/resume-1.lock"), true),
        (include_str!("fixtures/resume-foreign.lock"), false),
    ] {
        let data: ResumeLockData = serde_json::from_str(text).unwrap();
        assert_eq!((data.process_id, data.hostname.as_str()), (12345, "dev-machine"));
        assert_eq!(data.tenure.is_some(), ours);
        let fixture = Fixture::new();
        std::fs::write(fixture.path("job"), text).unwrap();
        assert!(matches!(fixture.manager.acquire("job"), Err(ResumeLockError::Held(held))
            if held.liveness == Liveness::Unknown && held.holder.as_ref() == Some(&data)));
    }
}

#[test]
fn exclusive_locks_of_every_version_are_read_and_written_unchanged() {
    for text in [include_str!("fixtures/exclusive-1.json"), include_str!("fixtures/exclusive-foreign.json")] {
        let lock = ExclusiveLock::parse(text.as_bytes()).unwrap();
        assert_eq!((lock.pid, lock.hostname.as_str()), (12345, "dev-machine"));
        assert_eq!(lock.liveness(), Liveness::Unknown);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&lock.to_json().unwrap()), value(text));
    }
}
