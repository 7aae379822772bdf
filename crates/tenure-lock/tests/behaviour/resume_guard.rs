//! A held resume lock excludes others, detects its loss, and is released without affecting other locks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tenure_lock::{LostReason, ResumeLockError, ResumeLockManager};

use super::{Fixture, foreign_resume, list, removed_files_keep_their_names};

fn lost(result: Result<(), ResumeLockError>) -> LostReason {
    match result {
        Err(ResumeLockError::Lost { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_and_managers_of_one_process_exclude_each_other() {
    let fixture = Fixture::new();
    let inside = AtomicBool::new(false);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let manager = ResumeLockManager::new(fixture.dir.path()).unwrap();
                for _ in 0..300 {
                    if let Ok(lock) = manager.acquire("job") {
                        assert!(!inside.swap(true, Ordering::SeqCst), "two holders");
                        taken.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.store(false, Ordering::SeqCst);
                        drop(lock);
                    }
                }
            });
        }
    });
    assert!(taken.load(Ordering::SeqCst) > 0);
    assert_eq!(fixture.file_count(), 0);
}

#[test]
fn different_ids_do_not_exclude_each_other() {
    let fixture = Fixture::new();
    let _locks = ["a", "b", "c"].map(|id| fixture.manager.acquire(id).unwrap());
}

#[test]
fn a_panic_releases() {
    let fixture = Fixture::new();
    let manager = fixture.manager.clone();
    let died = std::thread::spawn(move || {
        let _lock = manager.acquire("job").unwrap();
        panic!("on purpose");
    })
    .join();
    assert!(died.is_err());
    assert_eq!(fixture.file_count(), 0);
    let _again = fixture.manager.acquire("job").unwrap();
}

#[test]
fn force_does_not_break_a_live_os_lock() {
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    match fixture.manager.acquire_forced("job") {
        Err(ResumeLockError::Held(held)) => assert_eq!(held.holder.as_ref(), Some(lock.data())),
        other => panic!("{other:?}"),
    }
    lock.verify().unwrap();
}

#[test]
fn a_holder_detects_that_its_file_was_removed() {
    if removed_files_keep_their_names("a_holder_detects_that_its_file_was_removed") {
        return;
    }
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    std::fs::remove_file(lock.path()).unwrap();
    assert_eq!(lost(lock.verify()), LostReason::Removed);
    assert_eq!(lost(lock.release()), LostReason::Removed);
}

#[test]
fn a_holder_detects_and_keeps_a_file_that_replaced_its_own() {
    if removed_files_keep_their_names("a_holder_detects_and_keeps_a_file_that_replaced_its_own") {
        return;
    }
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    std::fs::remove_file(lock.path()).unwrap();
    std::fs::write(lock.path(), foreign_resume(1, "elsewhere")).unwrap();
    assert_eq!(lost(lock.verify()), LostReason::Replaced);
    drop(lock);
    assert_eq!(list(&fixture.locks_dir()), ["job.lock"]);
}

#[test]
fn a_holder_detects_and_keeps_a_text_that_is_not_its_own() {
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    std::fs::write(lock.path(), foreign_resume(1, "elsewhere")).unwrap();
    assert_eq!(lost(lock.verify()), LostReason::Overwritten);
    drop(lock);
    assert_eq!(std::fs::read_to_string(fixture.path("job")).unwrap(), foreign_resume(1, "elsewhere"));
}

#[test]
fn the_holder_can_be_queried_without_disturbing_it() {
    let fixture = Fixture::new();
    assert_eq!(fixture.manager.holder("job").unwrap(), None);
    let lock = fixture.manager.acquire("job").unwrap();
    let held = fixture.manager.holder("job").unwrap().unwrap();
    assert!(held.os_locked);
    assert_eq!(held.holder.as_ref(), Some(lock.data()));
    lock.verify().unwrap();
    drop(lock);
    assert_eq!(fixture.manager.holder("job").unwrap(), None);
    std::fs::write(fixture.path("job"), "not json").unwrap();
    assert!(matches!(fixture.manager.holder("job"), Err(ResumeLockError::Unreadable { .. })));
}

#[test]
fn remnants_of_killed_processes_are_swept_and_files_in_use_are_not() {
    let fixture = Fixture::new();
    let remnant = fixture.locks_dir().join(".job.1-2-3.tmp");
    let in_use = fixture.locks_dir().join(".job.4-5-6.tmp");
    std::fs::write(&remnant, "half").unwrap();
    let busy = std::fs::File::create(&in_use).unwrap();
    busy.lock().unwrap();
    let lock = fixture.manager.acquire("job").unwrap();
    ResumeLockManager::new(fixture.dir.path()).unwrap();
    assert!(!remnant.exists() && in_use.exists() && lock.path().exists());
    lock.verify().unwrap();
    drop(lock);
    assert_eq!(list(&fixture.locks_dir()), [".job.4-5-6.tmp"]);
}

#[test]
fn a_storage_directory_that_cannot_be_created_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = ResumeLockManager::new(dir.path().join("file")).unwrap_err();
    assert!(
        matches!(&error, ResumeLockError::Io { path, .. } if path.ends_with("file/resume_locks")),
        "{error:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_failed_adoption_does_not_end_the_lock() {
    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    let path = lock.path().to_owned();
    let is_locked = || std::fs::File::open(&path).unwrap().try_lock().is_err();
    let lent = lock.lend().unwrap();
    std::fs::write(&path, foreign_resume(1, "elsewhere")).unwrap();
    assert_eq!(lost(fixture.manager.adopt("job", lent).map(drop)), LostReason::Overwritten);
    assert!(is_locked());
    let stranger = std::fs::File::open(&path).unwrap();
    assert_eq!(lost(fixture.manager.adopt("job", stranger.into()).map(drop)), LostReason::Replaced);
    assert!(is_locked());
    drop(lock);
    assert!(!is_locked());
}
