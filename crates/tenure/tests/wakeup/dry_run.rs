//! A dry run reports what would be done and does nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use tenure_testkit::cli::{processes, until};

use crate::machine::Machine;

/// Every file below a folder with its bytes, but for SQLite's scratch space and what runners at work are writing.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.is_file() && !path.to_string_lossy().ends_with("-shm") {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_dry_run_changes_no_byte_and_no_process() {
    let machine = Machine::new();
    machine.project("nothing");
    machine.project("ready").task("A", &[]);
    let dead = machine.project("dead");
    dead.task("D", &["deaf", "fork", "mark begun-D", "wait go"]);
    let pid = dead.detached_runner(&[]);
    machine.wait_for("begun-D");
    processes::signal(pid, Signal::KILL);
    let hangs = machine.project("hangs");
    hangs.task("H", &["mark begun-H", "wait go"]);
    let silent = hangs.detached_runner(&[]);
    machine.wait_for("begun-H");
    hangs.stop_between_writes(silent);
    until("one is dead and one silent", || {
        let decided = machine.wake_up(&["--dry-run"]);
        decided["dead"].0 == "restarted" && decided["hangs"].0 == "restarted"
    });
    let stale = machine.project("stalelock");
    stale.task("S", &[]);
    std::fs::write(
        stale.root().join(".tenure/.exclusive-lock"),
        format!(
            r#"{{"holder":"x","pid":2000000000,"hostname":"{}","started_at":"2026-01-02T03:04:05Z"}}"#,
            tenure_lock::hostname()
        ),
    )
    .unwrap();
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut lasting = machine.agents();
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let now = machine.agents();
        lasting.retain(|pid| now.contains(pid) && name(*pid).trim() != "sleep");
    }
    let look = || {
        let mut found = BTreeMap::new();
        for folder in ["projects", "home", "run"] {
            files(&machine.path(folder), &mut found);
        }
        // What an agent that polls starts for a moment comes and goes: of agents, only those that were there before.
        let tenures = machine.tenures().into_iter().filter(|pid| name(*pid).trim() == "tenure");
        let mut running: Vec<_> = tenures.chain(lasting.iter().copied()).collect();
        running.sort_unstable();
        let state = |pid: u32| (pid, processes::is_alive(pid), processes::state(pid) == Some('T'));
        (found, running.into_iter().map(state).collect::<Vec<_>>())
    };
    let before = look();
    assert!(before.0.len() > 10 && before.1.len() >= 3, "the comparison sees something");
    for form in
        [&["runners", "wakeup", "--dry-run"][..], &["--json", "runners", "wakeup", "--dry-run", "--quiet"]]
    {
        assert_eq!(machine.run(form).code, Some(0));
    }
    let decided = machine.wake_up(&["--dry-run"]);
    let expected = [
        ("dead", "restarted"),
        ("hangs", "restarted"),
        ("nothing", "idle"),
        ("ready", "started"),
        ("stalelock", "started"),
    ];
    let told: Vec<_> =
        decided.iter().map(|(name, (decision, _))| (name.as_str(), decision.as_str())).collect();
    assert_eq!(told, expected);
    let after = look();
    let changed: Vec<_> = before.0.iter().filter(|(path, bytes)| after.0.get(*path) != Some(bytes)).collect();
    assert!(changed.is_empty(), "{:?}", changed.iter().map(|(path, _)| path).collect::<Vec<_>>());
    assert_eq!(before.0.keys().collect::<Vec<_>>(), after.0.keys().collect::<Vec<_>>());
    assert_eq!(before.1, after.1, "the same processes, in the same state");
    processes::signal(silent, Signal::CONT);
    machine.give("go");
}
