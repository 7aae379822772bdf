//! The tests that the specification of resume protection requires, under their names there.

use tenure_lock::{Liveness, ResumeLockData, ResumeLockError, hostname, is_process_running};

use super::{Fixture, NO_PID, foreign_resume};

#[test]
fn test_acquire_lock_success() {
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("test-job").unwrap();
    lock.verify().unwrap();
    assert!(fixture.path("test-job").exists());
}

#[test]
fn test_acquire_lock_fails_when_held() {
    let fixture = Fixture::new();
    let _lock = fixture.manager.acquire("test-job").unwrap();
    let refusal = fixture.manager.acquire("test-job").unwrap_err();
    assert!(refusal.to_string().contains("already in progress"));
}

#[test]
fn test_lock_released_on_drop() {
    let fixture = Fixture::new();
    drop(fixture.manager.acquire("test-job").unwrap());
    assert_eq!(fixture.file_count(), 0);
    let _again = fixture.manager.acquire("test-job").unwrap();
}

#[test]
fn test_stale_lock_cleanup() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("test-job"), foreign_resume(NO_PID, &hostname())).unwrap();
    let lock = fixture.manager.acquire("test-job").unwrap();
    assert_eq!(lock.data().process_id, std::process::id());
    lock.release().unwrap();
    assert_eq!(fixture.file_count(), 0);
}

#[test]
fn test_stale_lock_of_another_host_is_refused() {
    let fixture = Fixture::new();
    let text = foreign_resume(NO_PID, "test-host");
    std::fs::write(fixture.path("test-job"), &text).unwrap();
    match fixture.manager.acquire("test-job") {
        Err(ResumeLockError::Held(held)) => assert_eq!(held.liveness, Liveness::Unknown),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read_to_string(fixture.path("test-job")).unwrap(), text);
}

#[test]
fn test_is_process_running_current_process() {
    assert!(is_process_running(std::process::id()));
}

#[test]
fn test_is_process_running_fake_process() {
    for pid in [0, NO_PID, 1 << 31, u32::MAX] {
        assert!(!is_process_running(pid), "{pid}");
    }
}

#[test]
fn test_lock_data_serialization() {
    let data = ResumeLockData::new("test-job");
    let text = serde_json::to_string(&data).unwrap();
    assert_eq!(serde_json::from_str::<ResumeLockData>(&text).unwrap(), data);
    let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(fields["job_id"], "test-job");
    assert_eq!(fields["process_id"], std::process::id());
    assert_eq!(fields["hostname"], hostname());
    assert!(fields["acquired_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn test_concurrent_resume_attempts_blocked() {
    let fixture = Fixture::new();
    let barrier = std::sync::Barrier::new(2);
    let taken: Vec<_> = std::thread::scope(|scope| {
        let attempts = [(); 2].map(|()| {
            scope.spawn(|| {
                barrier.wait();
                fixture.manager.acquire("job")
            })
        });
        attempts.map(|attempt| attempt.join().unwrap()).into()
    });
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 1);
    let refusal = taken.iter().find_map(|taken| taken.as_ref().err()).unwrap();
    assert!(refusal.to_string().contains("already in progress"), "{refusal}");
}

#[test]
fn test_sequential_resume_succeeds() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.manager.acquire("job").unwrap().release().unwrap();
    }
}

#[test]
fn test_resume_after_crash_cleans_stale_lock() {
    let fixture = Fixture::new();
    let text = super::our_resume(|data| {
        data.process_id = NO_PID;
        data.tenure.as_mut().unwrap().identity.pid = NO_PID;
    });
    std::fs::write(fixture.path("job"), text).unwrap();
    let _lock = fixture.manager.acquire("job").unwrap();
}

#[test]
fn test_lock_error_message_helpful() {
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job-7").unwrap();
    let refusal = fixture.manager.acquire("job-7").unwrap_err();
    let at = lock.data().acquired_at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let words = format!(
        "Resume already in progress for job job-7\nLock held by: PID {} on {} (acquired {at})\nPlease wait for the other \
         process to complete.",
        std::process::id(),
        hostname()
    );
    assert_eq!(refusal.to_string(), words);
    match refusal {
        ResumeLockError::Held(held) => {
            assert_eq!(held.holder.as_ref(), Some(lock.data()));
            assert!(held.os_locked);
        }
        other => panic!("{other:?}"),
    }
}

#[cfg(feature = "async")]
#[test]
fn test_acquire_lock_in_async_code() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let fixture = Fixture::new();
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(lock) = pin!(fixture.manager.acquire_lock("job")).poll(&mut context) else {
        panic!("the lock is taken or refused at once");
    };
    lock.unwrap().release().unwrap();
}
