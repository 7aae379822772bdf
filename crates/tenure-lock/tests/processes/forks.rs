//! Children that must not keep a lock, and children that are meant to.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_lock::{ExclusiveLock, Liveness, ResumeLockError, ResumeLockManager, is_process_running};
#[cfg(target_os = "linux")]
use tenure_lock::{ProcessIdentity, ProcessInfo};

#[cfg(target_os = "linux")]
use super::outsiders::{NEW_NAMESPACE, can_unshare};
use super::roles::wait_for_end;
use super::worker::{Worker, role, say, wait_until};
#[cfg(target_os = "linux")]
use super::worker::{role_under, tell_skipped};

struct Orphan(u32);

impl Drop for Orphan {
    fn drop(&mut self) {
        end(self.0);
    }
}

fn end(pid: u32) {
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    wait_until("the orphan's end", || !is_process_running(pid));
}

/// Starts a holder with a child, kills the holder, and leaves the child running.
fn orphan_of(name: &str, dir: &Path) -> Orphan {
    let mut holder = Worker::start(role(name, dir));
    let child = Orphan(holder.line().parse().unwrap());
    let manager = ResumeLockManager::new(dir).unwrap();
    if name != "fork-plain" {
        assert!(matches!(manager.acquire("job"), Err(ResumeLockError::Held(held)) if held.os_locked));
    }
    holder.kill();
    assert!(is_process_running(child.0), "the child goes on");
    child
}

pub(crate) fn a_forked_child_does_not_keep_the_lock_alive() {
    let dir = tempfile::tempdir().unwrap();
    let child = orphan_of("fork", dir.path());
    ResumeLockManager::new(dir.path()).unwrap().acquire("job").unwrap().release().unwrap();
    assert!(is_process_running(child.0));
}

pub(crate) fn the_harness_sees_that_a_plain_forked_child_would() {
    let dir = tempfile::tempdir().unwrap();
    let _child = orphan_of("fork-plain", dir.path());
    assert!(
        File::open(dir.path().join("plain")).unwrap().try_lock().is_err(),
        "the child keeps a plain flock"
    );
}

pub(crate) fn a_started_program_does_not_keep_the_lock_alive() {
    let dir = tempfile::tempdir().unwrap();
    let child = orphan_of("spawn", dir.path());
    ResumeLockManager::new(dir.path()).unwrap().acquire("job").unwrap().release().unwrap();
    assert!(is_process_running(child.0));
}

pub(crate) fn a_child_that_is_lent_the_lock_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let child = orphan_of("lend", dir.path());
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    for take in [ResumeLockManager::acquire, ResumeLockManager::acquire_forced] {
        match take(&manager, "job") {
            Err(ResumeLockError::Held(held)) => {
                assert!(held.os_locked);
                assert_eq!(held.liveness, Liveness::Dead, "the writer of the file is gone");
            }
            other => panic!("{other:?}"),
        }
    }
    end(child.0);
    manager.acquire("job").unwrap().release().unwrap();
}

pub(crate) fn a_child_that_adopts_the_lock_keeps_it_after_the_parent_releases() {
    let dir = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let parent = Worker::start(role("lend-to-heir", dir.path()));
    let heir = Orphan(parent.line().parse().unwrap());
    parent.expect("released");
    parent.finish();
    let held = manager.holder("job").unwrap().unwrap();
    assert!(held.os_locked);
    assert_eq!(held.holder.unwrap().process_id, heir.0, "the file names the child");
    assert!(matches!(manager.acquire("job"), Err(ResumeLockError::Held(_))));
    end(heir.0);
    manager.acquire("job").unwrap().release().unwrap();
}

pub(crate) fn dropping_the_guard_in_a_forked_child_releases_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let holder = Worker::start(role("drop-in-child", dir.path()));
    holder.expect("child: OtherProcess");
    holder.expect("child is over");
    assert!(matches!(manager.acquire("job"), Err(ResumeLockError::Held(held)) if held.os_locked));
    holder.finish();
    manager.acquire("job").unwrap().release().unwrap();
}

pub(crate) fn forks_of_other_threads_do_not_keep_a_lock_that_is_just_being_taken() {
    let dir = tempfile::tempdir().unwrap();
    let mut storm = Worker::start(role("fork-storm", dir.path()));
    let taken: usize = storm.line().parse().unwrap();
    let children: Vec<Orphan> = storm.line().split(' ').map(|pid| Orphan(pid.parse().unwrap())).collect();
    storm.kill();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let count = || (0..taken).filter(|n| manager.holder(&format!("job-{n}")).unwrap().is_some()).count();
    // The last child closes its copies when it is first scheduled, which takes a moment on a busy machine.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut kept = count();
    while kept > 0 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
        kept = count();
    }
    println!("{} forks against {taken} locks: {kept} kept", children.len());
    assert_eq!(kept, 0);
    assert!(taken >= children.len(), "too few locks to show anything");
}

/// The children are created by a bare `clone`, which no fork handler notices. The second has the pid of its parent.
#[cfg(target_os = "linux")]
pub(crate) fn a_child_never_has_the_identity_of_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    for (name, prefix) in [("a child", &[][..]), ("the first process of a namespace", NEW_NAMESPACE)] {
        if !prefix.is_empty() && !can_unshare(prefix) {
            tell_skipped("a_child_never_has_the_identity_of_its_parent", "unshare is not allowed here");
            return;
        }
        let worker = Worker::start(role_under(prefix, "clone-itself", dir.path()));
        let [parent, child]: [ProcessIdentity; 2] =
            std::array::from_fn(|_| serde_json::from_str(&worker.line()).unwrap());
        assert_ne!(parent.start_time, child.start_time, "{name}");
        assert_eq!(parent.pid == child.pid, !prefix.is_empty(), "{name}");
        assert_eq!(parent.pid_ns == child.pid_ns, prefix.is_empty(), "{name}");
    }
}

/// Prints this process's identity and that of a child, which the first process of a namespace creates in another one.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the C library has no function for a bare clone")]
pub(crate) fn clone_itself() {
    let me = ProcessIdentity::current();
    wait_until("the next clock tick", || ProcessInfo::present_start_time() > me.start_time + 1);
    let namespace = if me.pid == 1 { libc::CLONE_NEWPID } else { 0 };
    say(&serde_json::to_string(&me).unwrap());
    // SAFETY: like fork, with its own memory; this process has one thread.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD | namespace, 0, 0, 0, 0) };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        say(&serde_json::to_string(&ProcessIdentity::current()).unwrap());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    wait_for_end();
}

/// Holds a resume lock if `ours`, else a plain flock; then forks a child that only sleeps.
#[expect(unsafe_code, reason = "fork is what is tested")]
pub(crate) fn hold_and_fork(dir: &Path, ours: bool) {
    let _lock = ours.then(|| ResumeLockManager::new(dir).unwrap().acquire("job").unwrap());
    let plain = File::create(dir.join("plain")).unwrap();
    plain.lock().unwrap();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: waits for a signal; has no arguments.
            unsafe { libc::pause() };
        }
    }
    say(&child.to_string());
    wait_for_end();
}

#[expect(clippy::zombie_processes, reason = "the child outlives this process on purpose")]
pub(crate) fn hold_and_spawn(dir: &Path, lend: bool) {
    let lock = ResumeLockManager::new(dir).unwrap().acquire("job").unwrap();
    let lent = lend.then(|| lock.lend().unwrap());
    let child = Command::new("sleep").arg("600").stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
    drop(lent);
    say(&child.id().to_string());
    wait_for_end();
}

#[expect(clippy::zombie_processes, reason = "the child outlives this process on purpose")]
pub(crate) fn hold_and_bequeath(dir: &Path) {
    let lock = ResumeLockManager::new(dir).unwrap().acquire("job").unwrap();
    let lent = lock.lend().unwrap();
    let mut command = role("heir", dir);
    command.env("TENURE_LOCK_FD", lent.as_raw_fd().to_string()).stdin(Stdio::null());
    let heir = command.spawn().unwrap();
    drop(lent);
    let adopted = dir.join("adopted");
    wait_until("the adoption", || adopted.exists());
    assert!(lock.verify().is_err(), "the parent detects that it is no longer the holder");
    drop(lock);
    say(&heir.id().to_string());
    say("released");
    wait_for_end();
}

#[expect(unsafe_code, reason = "an inherited descriptor is a plain number")]
pub(crate) fn inherit(dir: &Path) {
    let number = std::env::var("TENURE_LOCK_FD").unwrap().parse().unwrap();
    // SAFETY: the parent lent exactly this descriptor, and nothing else here uses it.
    let lent = unsafe { OwnedFd::from_raw_fd(number) };
    let lock = ResumeLockManager::new(dir).unwrap().adopt("job", lent).unwrap();
    lock.verify().unwrap();
    std::fs::write(dir.join("adopted"), "").unwrap();
    loop {
        std::thread::park();
    }
}

#[expect(unsafe_code, reason = "fork is what is tested")]
pub(crate) fn drop_in_child(dir: &Path) {
    let exclusive = ExclusiveLock::acquire(dir, "parent", "1").unwrap();
    let lock = ResumeLockManager::new(dir).unwrap().acquire("job").unwrap();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let Err(ResumeLockError::Lost { reason, .. }) = lock.verify() else {
            panic!("a child holds nothing")
        };
        say(&format!("child: {reason:?}"));
        assert!(!exclusive.is_held());
        drop((lock, exclusive));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    lock.verify().unwrap();
    assert!(exclusive.is_held());
    say("child is over");
    wait_for_end();
}

/// One thread forks children that keep running, while another acquires and keeps locks.
#[expect(unsafe_code, reason = "fork is what is tested")]
pub(crate) fn fork_storm(dir: &Path) {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    let manager = ResumeLockManager::new(dir).unwrap();
    let stop = AtomicBool::new(false);
    let taken = AtomicUsize::new(0);
    let mut children = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) && taken.load(Ordering::Relaxed) < 100_000 {
                let id = format!("job-{}", taken.load(Ordering::Relaxed));
                std::mem::forget(manager.acquire(&id).unwrap());
                taken.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..200 {
            // Forks without a pause would never leave an instant for acquiring a lock.
            std::thread::sleep(Duration::from_micros(300));
            while taken.load(Ordering::Relaxed) <= children.len() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(100));
            }
            // SAFETY: the child only waits, by system calls alone.
            let child = unsafe { libc::fork() };
            if child == 0 {
                loop {
                    // SAFETY: waits for a signal; has no arguments.
                    unsafe { libc::pause() };
                }
            }
            children.push(child);
        }
        stop.store(true, Ordering::Relaxed);
    });
    say(&taken.into_inner().to_string());
    say(&children.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    wait_for_end();
}
