//! The roles of the worker processes.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use tenure_lock::{
    ExclusiveLock, ProcessIdentity, ResumeLockManager, is_process_running, should_skip_database,
};

use super::rivals::{CreateNew, kill_zero};
use super::worker::{run_rounds, say};
use super::{exclusive, unix};

pub(crate) fn play(role: &str) {
    let dir = PathBuf::from(std::env::var_os("TENURE_LOCK_DIR").unwrap());
    let lock_file = dir.join("resume_locks/job.lock");
    match role {
        "race-ours" => {
            let manager = ResumeLockManager::new(&dir).unwrap();
            run_rounds(&dir, || match manager.acquire("job") {
                Ok(lock) => ("won", Some(lock)),
                Err(_) => ("lost", None),
            });
        }
        "race-create-new" => run_rounds(&dir, || match CreateNew::acquire(&lock_file, kill_zero) {
            Some(lock) => ("won", Some(lock)),
            None => ("lost", None),
        }),
        "race-exclusive" => run_rounds(&dir, || match ExclusiveLock::acquire(&dir, "racer", "1") {
            Ok(guard) => ("won", Some(guard)),
            Err(_) => ("lost", None),
        }),
        "race-skip" => run_rounds(&dir, || (if should_skip_database(&dir).skip { "skip" } else { "go" }, ())),
        "race-remove-by-name" => run_rounds(&dir, || (exclusive::remove_by_name(&dir), ())),
        "race-overwrite" => run_rounds(&dir, || (exclusive::overwrite(&dir), ())),
        "cycle-ours" => {
            let manager = ResumeLockManager::new(&dir).unwrap();
            say("ready");
            loop {
                drop(manager.acquire("job").unwrap());
            }
        }
        "cycle-create-new" => {
            say("ready");
            loop {
                drop(CreateNew::acquire(&lock_file, is_process_running));
            }
        }
        "once-ours" => {
            let manager = ResumeLockManager::new(&dir).unwrap();
            say("ready");
            manager.acquire("job").unwrap().release().unwrap();
            say("done");
        }
        "twice-ours" => {
            let manager = ResumeLockManager::new(&dir).unwrap();
            manager.acquire("job").unwrap().release().unwrap();
            say("ready");
            manager.acquire("job").unwrap().release().unwrap();
        }
        "once-skip" => {
            say("ready");
            assert!(!should_skip_database(&dir).skip);
            say("done");
        }
        "once-exclusive" => {
            say("ready");
            ExclusiveLock::acquire(&dir, "once", "1").unwrap().release().unwrap();
            say("done");
        }
        "hold" => hold(&dir),
        "hold-exclusive" => {
            let guard = ExclusiveLock::acquire(&dir, "holder", "1").unwrap();
            say("held");
            wait_for_end();
            drop(guard);
        }
        "identity" => {
            say(&serde_json::to_string(&ProcessIdentity::current()).unwrap());
            wait_for_end();
        }
        "probe" => answer_probes(),
        "end" => {}
        other => assert!(unix::play(other, &dir), "no role {other}"),
    }
}

fn hold(dir: &Path) {
    let lock = ResumeLockManager::new(dir).unwrap().acquire("job").unwrap();
    say("held");
    wait_for_end();
    drop(lock);
}

pub(crate) fn wait_for_end() {
    for line in std::io::stdin().lock().lines() {
        if line.is_err() {
            return;
        }
    }
}

/// Answers for each requested pid whether it is running and what its identity is.
fn answer_probes() {
    say("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let pid: u32 = if line == "self" { std::process::id() } else { line.parse().unwrap() };
        let liveness = ProcessIdentity::of(pid).map(|identity| identity.liveness());
        say(&format!("{} {liveness:?}", is_process_running(pid)));
    }
}
