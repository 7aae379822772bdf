//! Processes that are hard to inspect: zombies, and processes of other users, namespaces and hosts.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tenure_lock::{
    ExclusiveError, ExclusiveLock, Liveness, ProcessIdentity, ProcessInfo, ResumeLockError,
    ResumeLockManager, is_process_running,
};

use super::races::our_text;
use super::worker::{Worker, role, role_under, say, tell_skipped, wait_until};

pub(crate) const NEW_NAMESPACE: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
const NEW_NAMESPACE_OLD_PROCFS: &[&str] = &["unshare", "--pid", "--fork", "--kill-child"];

pub(crate) fn can_unshare(prefix: &[&str]) -> bool {
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg("true").stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn a_zombie_is_dead() {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let identity = ProcessIdentity::of(child.id()).unwrap();
    assert_eq!(identity.liveness(), Liveness::Alive);
    child.kill().unwrap();
    wait_until("the zombie", || ProcessInfo::of(child.id()).unwrap().ended);
    assert!(!is_process_running(child.id()));
    assert_eq!(identity.liveness(), Liveness::Dead);
    assert_eq!(ProcessIdentity::of(child.id()), None);
    child.wait().unwrap();
    assert_eq!(identity.liveness(), Liveness::Dead);
}

pub(crate) fn another_users_process_is_alive() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = role("probe", dir.path());
    command.uid(65_534).gid(65_534);
    let mine = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    if !mine.is_ok_and(|status| status.success()) {
        tell_skipped("another_users_process_is_alive", "cannot start a process as another user");
        return;
    }
    let mut command = role("probe", dir.path());
    command.uid(65_534).gid(65_534);
    let mut other = Worker::start(command);
    other.expect("ready");
    other.send("1");
    other.expect("true Some(Alive)");
    other.send(&std::process::id().to_string());
    other.expect("true Some(Alive)");
    other.send("0");
    other.expect("false None");
}

pub(crate) fn a_process_that_procfs_hides_is_alive() {
    // A separate procfs that hides other users' processes, so that only EPERM from the signal shows that they exist.
    const HIDDEN: &str = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\"";
    let prefix = ["unshare", "--mount", "sh", "-c", HIDDEN];
    let dir = tempfile::tempdir().unwrap();
    let status = role_under(&prefix, "probe", dir.path()).stdin(Stdio::null()).output();
    if !status.is_ok_and(|output| output.status.success()) {
        tell_skipped("a_process_that_procfs_hides_is_alive", "cannot mount a procfs or change the user here");
        return;
    }
    let mut other = Worker::start(role_under(&prefix, "probe", dir.path()));
    other.expect("ready");
    other.send("self");
    other.expect("true Some(Alive)");
    other.send("1");
    other.expect("true Some(Alive)");
    other.send("4194305");
    other.expect("false None");
}

pub(crate) fn a_holder_in_another_pid_namespace_is_unknown_but_its_death_frees_the_lock() {
    if !can_unshare(NEW_NAMESPACE) {
        tell_skipped("a_holder_in_another_pid_namespace", "unshare is not allowed here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let inside = Worker::start(role_under(NEW_NAMESPACE, "identity", dir.path()));
    let identity: ProcessIdentity = serde_json::from_str(&inside.line()).unwrap();
    assert_eq!(identity.pid, 1);
    assert_ne!(identity.pid_ns, ProcessIdentity::current().pid_ns);
    assert_eq!(identity.liveness(), Liveness::Unknown);
    inside.finish();
    assert_eq!(identity.liveness(), Liveness::Unknown, "not determinable from outside");

    let mut holder = Worker::start(role_under(NEW_NAMESPACE, "hold", dir.path()));
    holder.expect("held");
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    assert!(matches!(manager.acquire("job"), Err(ResumeLockError::Held(held)) if held.os_locked));
    holder.kill();
    wait_until("the death of the namespace", || manager.holder("job").unwrap().is_none());
    manager.acquire("job").unwrap().release().unwrap();
}

pub(crate) fn a_procfs_of_another_namespace_does_not_mislead() {
    if !can_unshare(NEW_NAMESPACE_OLD_PROCFS) {
        tell_skipped("a_procfs_of_another_namespace", "unshare is not allowed here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut inside = Worker::start(role_under(NEW_NAMESPACE_OLD_PROCFS, "probe", dir.path()));
    inside.expect("ready");
    inside.send("self");
    inside.expect("true Some(Alive)");
    // Outside the namespace this pid is this process, and the inherited procfs shows it; inside, no process has it.
    inside.send(&std::process::id().to_string());
    inside.expect("false None");
}

pub(crate) fn a_remote_looking_holder_is_refused_while_it_lives_and_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let text = our_text("job", |data| {
        let identity = &mut data.tenure.as_mut().unwrap().identity;
        identity.host_id = "another machine".into();
        identity.boot_id = "another boot".into();
    });
    let path = dir.path().join("resume_locks/job.lock");
    std::fs::write(&path, &text).unwrap();
    match manager.acquire("job") {
        Err(ResumeLockError::Held(held)) => {
            assert!(!held.os_locked);
            assert_eq!(held.liveness, Liveness::Unknown);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a refusal changes nothing");
    manager.acquire_forced("job").unwrap().release().unwrap();
}

/// Reports the result of acquiring both kinds of locks.
pub(crate) fn try_to_lock(dir: &Path) {
    let resume = ResumeLockManager::new(dir).and_then(|manager| manager.acquire("job"));
    match resume {
        Ok(_) => say("taken"),
        Err(ResumeLockError::Io { source, .. }) => say(&format!("{:?}", source.kind())),
        Err(other) => say(&format!("{other:?}")),
    }
    match ExclusiveLock::acquire(dir, "tool", "1") {
        Ok(_) => say("taken"),
        Err(ExclusiveError::Io { source, .. }) => say(&format!("{:?}", source.kind())),
        Err(other) => say(&format!("{other:?}")),
    }
}

pub(crate) fn a_read_only_directory_is_an_error_and_not_a_lock() {
    let dir = tempfile::tempdir().unwrap();
    ResumeLockManager::new(dir.path()).unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set(&dir.path().join("resume_locks"), 0o555);
    set(dir.path(), 0o555);
    // Root is not restricted by permissions.
    let mut command = role("try", dir.path());
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.stdin(Stdio::null()).output();
    set(dir.path(), 0o755);
    match output {
        Ok(output) => {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "PermissionDenied\nPermissionDenied\n");
        }
        Err(error) => tell_skipped("a_read_only_directory", &error.to_string()),
    }
}

pub(crate) fn a_full_or_read_only_disk_is_an_error_and_leaves_nothing_that_blocks() {
    const OWN_MOUNTS: &[&str] = &["unshare", "--mount"];
    if !can_unshare(OWN_MOUNTS) {
        tell_skipped("a_full_or_read_only_disk", "unshare is not allowed here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let worker = Worker::start(role_under(OWN_MOUNTS, "file-systems", dir.path()));
    if worker.line() != "mounted" {
        tell_skipped("a_full_or_read_only_disk", "mount is not allowed here");
        return;
    }
    for line in [
        // A full disk, with a stale lock whose blocks are already allocated.
        "StorageFull",
        "StorageFull",
        "stale: taken",
        "left: []",
        // Space is available again.
        "taken",
        "taken",
        // Read-only.
        "ReadOnlyFilesystem",
        "ReadOnlyFilesystem",
    ] {
        worker.expect(line);
    }
}

/// Runs in a separate mount namespace, which ends with it.
pub(crate) fn on_bad_file_systems(dir: &Path) {
    let mount = |arguments: &[&str]| {
        Command::new("mount").args(arguments).arg(dir).status().is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        return say("not mounted");
    }
    say("mounted");
    let manager = ResumeLockManager::new(dir).unwrap();
    let stale = our_text("stale", |_| {});
    std::fs::write(dir.join("resume_locks/stale.lock"), stale).unwrap();
    let mut filler = std::fs::File::create(dir.join("filler")).unwrap();
    while filler.write(&[b'x'; 4096]).is_ok() {}
    try_to_lock(dir);
    match manager.acquire("stale") {
        Ok(lock) => {
            lock.verify().unwrap();
            say("stale: taken");
        }
        Err(error) => say(&format!("stale: {error}")),
    }
    let left: Vec<_> = std::fs::read_dir(dir.join("resume_locks")).unwrap().flatten().collect();
    say(&format!("left: {left:?}"));
    std::fs::remove_file(dir.join("filler")).unwrap();
    drop(filler);
    try_to_lock(dir);
    assert!(mount(&["-o", "remount,ro"]));
    try_to_lock(dir);
}
