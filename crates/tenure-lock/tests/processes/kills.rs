//! SIGKILL at any instant of acquire and release.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_lock::{ResumeLockManager, is_process_running};

use super::races::{a_dead_pid, our_text};
use super::rivals::{CreateNew, foreign_json};
use super::worker::{Random, Worker, role, role_under, tell_skipped};

const INSTANTS: usize = 400;

pub(crate) fn a_kill_at_any_instant_needs_no_manual_cleanup() {
    let dir = tempfile::tempdir().unwrap();
    let manager = ResumeLockManager::new(dir.path()).unwrap();
    let mut random = Random::new("kills");
    for instant in 0..INSTANTS {
        kill_one(dir.path(), "cycle-ours", &mut random);
        let lock = manager.acquire("job").unwrap_or_else(|error| panic!("after kill {instant}: {error}"));
        lock.release().unwrap();
    }
    ResumeLockManager::new(dir.path()).unwrap();
    assert_eq!(
        std::fs::read_dir(dir.path().join("resume_locks")).unwrap().count(),
        0,
        "nothing is left behind"
    );
    println!("{INSTANTS} kills at random instants: the next acquire succeeded every time");
}

pub(crate) fn the_harness_detects_the_empty_file_of_the_create_new_algorithm() {
    let dir = tempfile::tempdir().unwrap();
    ResumeLockManager::new(dir.path()).unwrap();
    let path = dir.path().join("resume_locks/job.lock");
    let mut random = Random::new("kills of the create-new algorithm");
    let mut blocked = 0;
    for _ in 0..INSTANTS {
        kill_one(dir.path(), "cycle-create-new", &mut random);
        if CreateNew::acquire(&path, is_process_running).is_none() {
            blocked += 1;
            std::fs::remove_file(&path).unwrap();
        }
    }
    println!("the create-new algorithm: {blocked} of {INSTANTS} kills left a file that blocks for ever");
    assert!(blocked > 0, "the harness would not notice a file that blocks");
}

fn kill_one(dir: &Path, name: &str, random: &mut Random) {
    let mut worker = Worker::start(role(name, dir));
    worker.expect("ready");
    std::thread::sleep(Duration::from_micros(random.below(1_500)));
    worker.kill();
}

/// Exhaustive, unlike the random instants: strace kills the worker on entering its n-th system call.
pub(crate) fn a_kill_at_every_system_call_needs_no_manual_cleanup() {
    if !can_trace() {
        tell_skipped("a_kill_at_every_system_call", "strace cannot trace here");
        return;
    }
    let dead = a_dead_pid();
    let starts = [
        ("fresh", None),
        (
            "stale",
            Some(our_text("job", |data| data.tenure.as_mut().unwrap().identity.boot_id = "earlier".into())),
        ),
        ("foreign", Some(foreign_json("job", dead))),
    ];
    for (name, text) in starts {
        let calls = kill_at_each_call(
            "once-ours",
            |dir| {
                ResumeLockManager::new(dir).unwrap();
                if let Some(text) = &text {
                    std::fs::write(dir.join("resume_locks/job.lock"), text).unwrap();
                }
            },
            |dir, call| {
                let lock = ResumeLockManager::new(dir).unwrap().acquire("job");
                lock.unwrap_or_else(|error| panic!("{name}, killed at call {call}: {error}"))
                    .release()
                    .unwrap();
                let left: Vec<_> = std::fs::read_dir(dir.join("resume_locks")).unwrap().flatten().collect();
                assert!(left.is_empty(), "{name}, killed at call {call}: {left:?}");
            },
        );
        println!("{name}: killed at each of {calls} system calls of acquire and release");
    }
}

pub(crate) fn a_process_reads_its_own_identity_from_procfs_only_once() {
    if !can_trace() {
        tell_skipped("a_process_reads_its_own_identity_from_procfs_only_once", "strace cannot trace here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let prefix = ["strace", "-qq", "-o", trace.path().to_str().unwrap()];
    let mut command = role_under(&prefix, "twice-ours", dir.path());
    assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
    let text = std::fs::read_to_string(trace.path()).unwrap();
    let (first, second) = text.split_once("\"ready").unwrap();
    assert!(first.contains("\"/proc/self/stat\""), "{first}");
    assert!(second.contains("job.lock") && !second.contains("\"/proc/"), "{second}");
}

pub(crate) fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "inject=getppid:signal=KILL", "true"])
        .stderr(Stdio::null())
        .status();
    traced.is_ok_and(|status| status.success())
}

/// Runs the role once to list its system calls, then once for each call after `ready`, killed on entering it.
pub(crate) fn kill_at_each_call(name: &str, prepare: impl Fn(&Path), check: impl Fn(&Path, &str)) -> usize {
    let whole = tempfile::tempdir().unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    prepare(whole.path());
    let prefix = ["strace", "-qq", "-o", trace.path().to_str().unwrap()];
    let status = role_under(&prefix, name, whole.path()).stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());
    let text = std::fs::read_to_string(trace.path()).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('(')?.0)).collect();
    let first = text.lines().position(|line| line.contains("\"ready")).unwrap() + 1;
    for call in first..names.len() {
        let nth = names[..=call].iter().filter(|other| **other == names[call]).count();
        let what = format!("{}, the {nth}.", names[call]);
        let inject = format!("inject={}:signal=KILL:when={nth}", names[call]);
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let prefix = ["strace", "-qq", "-o", "/dev/null", "-e", &inject];
        role_under(&prefix, name, dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
        check(dir.path(), &what);
    }
    names.len() - first
}
