//! Every path of the decision table, each with its own project and processes, in one wake-up.

use rustix::process::Signal;

use tenure_testkit::cli::{Project, processes, until};

use crate::SUITE;
use crate::machine::{Machine, decisions, make_silent};

fn lock_of(holder: &str, pid: u32, host: &str) -> String {
    format!(r#"{{"holder":"{holder}","pid":{pid},"hostname":"{host}","started_at":"2026-01-02T03:04:05Z"}}"#)
}

/// A pid that no process has.
const NO_SUCH_PID: u32 = 2_000_000_000;

/// Starts a runner and waits until its agent has begun.
fn start_runner(project: &Project, key: &str) -> u32 {
    project.task(key, &["fork", &format!("mark begun-{key}"), &format!("wait go-{key}")]);
    let pid = project.detached_runner(&[]);
    project.wait_for(&format!("begun-{key}"));
    pid
}

/// Replaces the database file by other content, or makes the server unreachable.
fn break_store(project: &Project) {
    if SUITE.is_on_postgres() {
        project.ok(&["config", "set", "store.url", "postgres://nobody@127.0.0.1:1/nowhere"]);
        return;
    }
    std::fs::write(project.database(), "this is no database").unwrap();
    for side in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{side}", project.database().display()));
    }
}

#[test]
fn wake_up_takes_every_path_of_the_decision_table() {
    let machine = Machine::new();
    let host = tenure_lock::hostname();
    let me = std::process::id();

    machine.project("nothing");
    machine.project("ready").task("READY", &["mark begun-READY", "wait go-READY"]);
    let works = machine.project("works");
    let works_pid = start_runner(&works, "WORKS");
    let dead = machine.project("dead");
    let dead_pid = start_runner(&dead, "DEAD");
    processes::signal(dead_pid, Signal::KILL);
    let hangs = machine.project("hangs");
    let hangs_pid = start_runner(&hangs, "HANGS");
    let wakes = machine.project("wakes");
    let wakes_pid = start_runner(&wakes, "WAKES");
    let idle_pid = machine.project("idles").detached_runner(&["--idle-timeout", "10m"]);
    processes::signal(idle_pid, Signal::KILL);
    let locked = machine.project("locked");
    locked.task("L", &[]);
    std::fs::write(locked.root().join(".tenure/.exclusive-lock"), lock_of("backup", me, &host)).unwrap();
    let beads = machine.project("beads");
    beads.task("B", &[]);
    std::fs::create_dir(beads.root().join(".beads")).unwrap();
    std::fs::write(beads.root().join(".beads/.exclusive-lock"), lock_of("vc-executor", 7, "another-host"))
        .unwrap();
    let malformed = machine.project("malformed");
    malformed.task("M", &[]);
    std::fs::write(malformed.root().join(".tenure/.exclusive-lock"), "{").unwrap();
    let stale = machine.project("stalelock");
    stale.task("S", &["mark begun-S", "wait go-S"]);
    std::fs::write(stale.root().join(".tenure/.exclusive-lock"), lock_of("crashed", NO_SUCH_PID, &host))
        .unwrap();
    let parked = machine.project("parked");
    for n in 0..3 {
        parked.task(&format!("P{n}"), &["print Please log in", "exit 1"]);
    }
    assert_eq!(parked.run(&["runners", "start", "--foreground"]).code, Some(1));
    let off = machine.project("off");
    off.task("O", &[]);
    off.ok(&["projects", "disable"]);
    let unwanted = machine.project("unwanted");
    unwanted.task("U", &[]);
    unwanted.ok(&["untrust"]);
    let gone = machine.project("gone");
    std::fs::remove_dir_all(gone.root()).unwrap();
    let broken = machine.project("broken");
    break_store(&broken);
    let agentless = machine.project("agentless");
    agentless.task("A", &[]);
    agentless.ok(&["config", "set", "runners.preset", "claude"]);
    agentless.ok(&["config", "set", "presets.claude.command", "[./nowhere]"]);
    let held = machine.project("held");
    held.task("H", &[]);
    held.ok(&["tasks", "claim", "H", "--agent", "bob", "--ttl", "1h"]);

    // Two runners are silent. One of them was only stopped: it continues when its doorbell rings.
    for (project, pid) in [(&hangs, hangs_pid), (&wakes, wakes_pid)] {
        project.stop_between_writes(pid);
        make_silent(project);
    }
    let wake_up = machine.spawn(&["--json", "runners", "wakeup"]);
    until("the stopped runner was rung", || machine.wakeup_log().contains("wakes: Runner"));
    processes::signal(wakes_pid, Signal::CONT);
    let answer = wake_up.end();
    assert_eq!(answer.code, Some(1), "a decision is error: {answer:?}");
    let decided = decisions(&answer.json()["data"]);

    let expected = [
        ("nothing", "idle", "there are no tasks"),
        ("ready", "started", "READY is ready and no runner is active"),
        ("works", "running", "last heartbeat"),
        ("dead", "restarted", "was dead"),
        ("hangs", "restarted", "did not respond and was killed"),
        ("wakes", "running", "it answered when it was rung"),
        ("idles", "restarted", "was dead"),
        ("locked", "locked", "Skipping database (locked by backup)"),
        ("beads", "locked", "Skipping database (locked by vc-executor)"),
        ("malformed", "locked", "Skipping database (lock check failed: malformed lock file: "),
        ("stalelock", "started", "S is ready"),
        ("parked", "parked", "pretend is parked for another"),
        ("off", "disabled", "tenure projects disable"),
        ("unwanted", "untrusted", "it is not trusted; run `tenure trust` in it"),
        ("gone", "missing", "it no longer exists"),
        (
            "broken",
            "error",
            if SUITE.is_on_postgres() { "cannot be reached" } else { "damaged or not a database" },
        ),
        ("agentless", "parked", "preset claude is parked: there is no "),
        ("held", "idle", "all remaining tasks are held (1)"),
    ];
    assert_eq!(decided.len(), expected.len(), "{decided:#?}");
    for (name, decision, reason) in expected {
        let (was, why) = &decided[name];
        assert_eq!(was, decision, "{name}: {why}");
        assert!(why.contains(reason), "{name}: {why:?} has no {reason:?}");
    }
    let log = machine.wakeup_log();
    for line in [
        "locked: Skipping database (locked by backup)",
        "beads: Skipping database (locked by vc-executor)",
        "malformed: Skipping database (lock check failed: malformed lock file: ",
        "stalelock: Removed stale lock (crashed), proceeding with sync",
    ] {
        assert!(log.contains(line), "{line:?} is not in:\n{log}");
    }
    assert!(!stale.root().join(".tenure/.exclusive-lock").exists());
    assert!(malformed.root().join(".tenure/.exclusive-lock").exists(), "never deleted");

    // The processes match the decisions.
    assert!(processes::is_alive(works_pid) && processes::is_alive(wakes_pid), "left alone");
    assert!(!processes::is_alive(hangs_pid), "killed");
    for project in [&works, &wakes, &dead, &hangs] {
        assert_eq!(project.runners().len(), 1, "{project:?}");
    }
    for project in [&locked, &beads, &malformed, &parked, &off, &unwanted] {
        assert!(project.runners().is_empty(), "{project:?}");
    }
    for key in ["READY", "WORKS", "DEAD", "HANGS", "WAKES", "S"] {
        machine.give(&format!("go-{key}"));
    }
    works.wait_until("WORKS", "completed");
    wakes.wait_until("WAKES", "completed");
    dead.wait_until("DEAD", "completed");
    hangs.wait_until("HANGS", "completed");
    stale.wait_until("S", "completed");
    assert_eq!(wakes.moves("WAKES", "in_progress"), 1, "the stopped runner did its task in one attempt");
}

#[test]
fn quiet_prints_nothing_and_errors_are_in_the_log() {
    let machine = Machine::new();
    machine.project("nothing");
    machine.project("ready").task("A", &[]);
    let quiet = machine.run(&["runners", "wakeup", "--quiet"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));
    let broken = machine.project("broken");
    std::fs::write(broken.root().join(".tenure/config.yaml"), "lockng: {}\n").unwrap();
    let said = machine.run(&["runners", "wakeup", "--quiet"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(1), "", ""));
    let log = machine.wakeup_log();
    assert!(log.contains("broken") && log.contains("lockng"), "{log}");
    std::fs::remove_file(machine.tenure_home().join("wakeup.lock")).unwrap();
    std::fs::create_dir(machine.tenure_home().join("wakeup.lock")).unwrap();
    let failed = machine.run(&["runners", "wakeup", "--quiet"]);
    assert_ne!(failed.code, Some(0));
    assert_eq!((failed.out.as_str(), failed.err.as_str()), ("", ""));
    assert!(machine.wakeup_log().contains("wakeup.lock"), "{}", machine.wakeup_log());
}

#[test]
fn a_project_that_has_moved_is_reported_with_its_new_path() {
    let machine = Machine::new();
    let project = machine.project("old");
    let new = machine.path("projects/new");
    std::fs::rename(project.root(), &new).unwrap();
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["old"], ("missing".to_owned(), "it no longer exists".to_owned()));
    machine.ok(&["-C", new.to_str().unwrap(), "projects", "add"]);
    let decided = machine.wake_up(&[]);
    assert_eq!((decided["old"].0.as_str(), decided["new"].0.as_str()), ("missing", "untrusted"));
    assert!(decided["old"].1.ends_with(&format!("the same project is at {}", new.display())), "{decided:?}");
    let listed = machine.ok(&["projects", "list"]);
    let old =
        listed["projects"].as_array().unwrap().iter().find(|p| p["state"] == "missing").unwrap().clone();
    assert_eq!(old["movedTo"], new.to_str().unwrap(), "{listed}");
    assert_eq!(machine.run(&["runners", "wakeup"]).code, Some(0), "missing is not fatal");
}
