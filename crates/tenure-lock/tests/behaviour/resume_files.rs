//! The possible contents of a resume lock file, and their consequences.

use tenure_lock::{Liveness, ResumeLockError, hostname};

use super::{Fixture, NO_PID, foreign_resume, our_resume};

/// Acquired without force, and the file names this process.
fn is_taken(text: &[u8]) -> Fixture {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("job"), text).unwrap();
    let lock = fixture.manager.acquire("job").unwrap_or_else(|error| panic!("{error} on {text:?}"));
    let written = std::fs::read(fixture.path("job")).unwrap();
    assert_eq!(serde_json::from_slice::<tenure_lock::ResumeLockData>(&written).unwrap(), *lock.data());
    lock.release().unwrap();
    assert_eq!(fixture.file_count(), 0);
    fixture
}

/// Refused and unchanged; acquired with force.
fn is_refused(text: &[u8]) -> ResumeLockError {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("job"), text).unwrap();
    let refusal = fixture.manager.acquire("job").unwrap_err();
    assert_eq!(std::fs::read(fixture.path("job")).unwrap(), text, "a refusal changes nothing");
    let lock = fixture.manager.acquire_forced("job").unwrap();
    lock.verify().unwrap();
    lock.release().unwrap();
    assert_eq!(fixture.file_count(), 0);
    refusal
}

#[test]
fn an_empty_file_is_free() {
    is_taken(b"");
}

#[test]
fn a_torn_write_of_this_crate_is_free() {
    let text = our_resume(|_| {});
    for length in [1, 2, 10, 40, text.len() - 3] {
        is_taken(&text.as_bytes()[..length]);
    }
}

#[test]
fn a_file_of_this_boot_without_an_os_lock_is_free_whatever_host_and_pid_it_names() {
    is_taken(our_resume(|_| {}).as_bytes());
    is_taken(
        our_resume(|data| {
            data.hostname = "4f1d2c3b5a69".into();
            let identity = &mut data.tenure.as_mut().unwrap().identity;
            identity.host_id = "a container's".into();
            identity.pid_ns = 12345;
        })
        .as_bytes(),
    );
}

#[test]
fn a_file_of_an_earlier_boot_is_free() {
    is_taken(our_resume(|data| data.tenure.as_mut().unwrap().identity.boot_id = "earlier".into()).as_bytes());
}

#[test]
fn a_file_of_another_host_is_refused() {
    let refusal = is_refused(
        our_resume(|data| {
            let identity = &mut data.tenure.as_mut().unwrap().identity;
            identity.host_id = "another".into();
            identity.boot_id = "another".into();
        })
        .as_bytes(),
    );
    assert!(
        matches!(refusal, ResumeLockError::Held(held) if held.liveness == Liveness::Unknown && !held.os_locked)
    );
}

#[test]
fn a_foreign_file_of_a_live_process_is_refused() {
    let refusal = is_refused(foreign_resume(std::process::id(), &hostname()).as_bytes());
    assert!(
        matches!(refusal, ResumeLockError::Held(held) if held.liveness == Liveness::Alive && !held.os_locked)
    );
}

#[test]
fn a_foreign_file_of_a_dead_process_is_free_whatever_the_case_of_the_hostname() {
    is_taken(foreign_resume(NO_PID, &hostname()).as_bytes());
    is_taken(foreign_resume(NO_PID, &hostname().to_uppercase()).as_bytes());
    is_taken(foreign_resume(0, &hostname()).as_bytes());
}

#[test]
fn malformed_truncated_binary_and_huge_foreign_files_are_refused() {
    let foreign = foreign_resume(NO_PID, &hostname());
    let mut huge = foreign.clone().into_bytes();
    huge.resize(10 << 20, b' ');
    for text in [
        b"not json".to_vec(),
        b"{}".to_vec(),
        foreign.as_bytes()[..foreign.len() - 1].to_vec(),
        (0..=255).collect(),
        vec![0; 512],
        huge,
    ] {
        let refusal = is_refused(&text);
        assert!(matches!(refusal, ResumeLockError::Unreadable { .. }), "{refusal:?}");
        assert!(refusal.to_string().starts_with("Failed to check lock status for job: "), "{refusal}");
    }
}

#[test]
fn a_refusal_never_mentions_force() {
    for text in ["not json".to_owned(), foreign_resume(1, "test-host")] {
        let words = is_refused(text.as_bytes()).to_string();
        assert!(!words.contains("force"), "{words}");
    }
}

#[test]
fn a_hostname_from_a_file_cannot_forge_lines() {
    let words = is_refused(foreign_resume(1, "evil\\nReleased\\u001b[2J").as_bytes()).to_string();
    assert_eq!(words.lines().count(), 3, "{words:?}");
    assert!(!words.contains('\u{1b}'));
}

#[cfg(unix)]
#[test]
fn a_symlink_instead_of_the_lock_is_neither_followed_nor_removed() {
    let fixture = Fixture::new();
    let target = fixture.dir.path().join("precious");
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, fixture.path("job")).unwrap();
    for take in [tenure_lock::ResumeLockManager::acquire, tenure_lock::ResumeLockManager::acquire_forced] {
        let refusal = take(&fixture.manager, "job").unwrap_err();
        assert!(matches!(refusal, ResumeLockError::Unreadable { .. }), "{refusal:?}");
    }
    std::os::unix::fs::symlink(fixture.dir.path().join("nowhere"), fixture.path("dangling")).unwrap();
    assert!(fixture.manager.acquire("dangling").is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"");
    assert!(!fixture.dir.path().join("nowhere").exists());
    assert_eq!(fixture.file_count(), 2);
}

#[cfg(unix)]
#[test]
fn a_directory_pipe_or_socket_instead_of_the_lock_is_refused_without_blocking() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("directory")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status();
    assert!(pipe.unwrap().success());
    for id in ["directory", "socket", "pipe"] {
        let refusal = fixture.manager.acquire(id).unwrap_err();
        assert!(matches!(refusal, ResumeLockError::Unreadable { .. }), "{id}: {refusal:?}");
        assert!(fixture.manager.acquire_forced(id).is_err());
        assert!(fixture.path(id).symlink_metadata().is_ok(), "{id} is still there");
    }
}

#[cfg(unix)]
#[test]
fn created_files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let fixture = Fixture::new();
    let lock = fixture.manager.acquire("job").unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(lock.path()), 0o600);
    assert_eq!(mode(&fixture.locks_dir()), 0o700);
}
