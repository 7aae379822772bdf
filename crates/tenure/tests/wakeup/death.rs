//! A whole machine dies: all runners at the same time, and only their agents survive.

use rustix::process::Signal;

use tenure_testkit::cli::{Project, full_or, processes, until};

use crate::SUITE;
use crate::machine::{Machine, USUAL};

/// Projects with a runner each, whose agent works on a task that it cannot finish, and with another task after it.
fn start_projects(machine: &Machine, count: usize) -> Vec<Project> {
    let projects: Vec<_> = (0..count).map(|n| machine.project(&format!("p{n}"))).collect();
    for (n, project) in projects.iter().enumerate() {
        project.task("A", &["deaf", "fork", "away", &format!("mark begun-{n}"), "wait go"]);
        project.task("B", &["print two"]);
    }
    for project in &projects {
        project.detached_runner(&[]);
    }
    for n in 0..count {
        machine.wait_for(&format!("begun-{n}"));
    }
    projects
}

fn assert_all_backlogs_finish(machine: &Machine, projects: &[Project]) {
    machine.give("go");
    for project in projects {
        for key in ["A", "B"] {
            project.wait_until(key, "completed");
            assert_eq!(project.moves(key, "completed"), 1);
        }
    }
    until("nothing is left", || machine.tenures().is_empty() && machine.agents().is_empty());
}

fn assert_everything_is_restarted_once(machine: &Machine, projects: &[Project], before: &[u32]) {
    let decided = machine.wake_up(&[]);
    assert_eq!(decided.len(), projects.len());
    assert!(decided.values().all(|(decision, _)| decision == "restarted"), "{decided:#?}");
    let now = machine.agents();
    let left: Vec<_> = before.iter().filter(|pid| now.contains(pid)).collect();
    assert!(left.is_empty(), "agents of dead runners are alive: {left:?}");
    for project in projects {
        assert_eq!(project.runners().len(), 1, "{project:?}");
    }
}

#[test]
fn after_the_death_of_every_runner_one_wake_up_restarts_everything() {
    let machine = Machine::new();
    let count = if SUITE.is_on_postgres() { full_or(20, 6) } else { 20 };
    let projects = start_projects(&machine, count);
    let runners = machine.tenures();
    assert!(runners.len() >= count, "{runners:?}");
    for pid in runners {
        processes::signal(pid, Signal::KILL);
    }
    until("every runner is dead", || machine.tenures().is_empty());
    let before = machine.agents();
    assert!(
        before.len() >= count,
        "agents survive that ignore signals or have their own session: {before:?}"
    );
    assert_everything_is_restarted_once(&machine, &projects, &before);
    assert_all_backlogs_finish(&machine, &projects);
}

#[test]
fn after_a_reboot_one_wake_up_restarts_everything() {
    let machine = Machine::new();
    let projects = start_projects(&machine, full_or(20, if SUITE.is_on_postgres() { 3 } else { 6 }));
    machine.kill_everything();
    // Everything was recorded in an earlier boot, and each pid now belongs to another process.
    let me = std::process::id();
    for project in &projects {
        project.rewrite_processes(|process| {
            process["boot_id"] = "boot before".into();
            process["pid"] = me.into();
        });
    }
    if SUITE.is_on_postgres() {
        // Another machine may have the same id, so an earlier boot does not prove that a process is dead; its lease
        // expires.
        // A runner that finds nothing else to do ends before that, and the next wake-up starts another.
        machine.give("go");
        until("every backlog is finished", || {
            machine.wake_up(&[]);
            projects.iter().all(|project| project.status("A") == "completed")
        });
    } else {
        assert_everything_is_restarted_once(&machine, &projects, &[]);
    }
    assert_all_backlogs_finish(&machine, &projects);
    if !SUITE.is_on_postgres() {
        assert_eq!(projects[0].show("A")["attempts"], 0, "a power cut is not charged");
    }
}

#[test]
fn as_many_runners_are_restored_as_died() {
    let machine = Machine::with(&USUAL.replace("runners: {", "runners: {maxConcurrent: 3, "));
    let project = machine.project("p");
    for key in ["A", "B", "C"] {
        project.task(key, &[&format!("mark begun-{key}"), "wait go"]);
    }
    let pids: Vec<u32> = ["A", "B", "C"]
        .map(|key| {
            let pid = project.detached_runner(&[]);
            machine.wait_for(&format!("begun-{key}"));
            pid
        })
        .to_vec();
    for pid in &pids[..2] {
        processes::signal(*pid, Signal::KILL);
    }
    until("two are dead", || machine.tenures() == pids[2..]);
    let told = machine.wake_up(&["--dry-run"]);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["p"].0, "restarted", "{decided:?}");
    assert_eq!(decided["p"].1.matches("was dead").count(), 2, "{decided:?}");
    assert_eq!(told, decided, "the dry run");
    assert_eq!(project.runners().len(), 3);
    assert!(processes::is_alive(pids[2]), "the live one goes on");
    assert_eq!(machine.wake_up(&[])["p"].0, "running");
    assert_eq!(project.runners().len(), 3);
    machine.give("go");
    for key in ["A", "B", "C"] {
        project.wait_until(key, "completed");
    }
}

#[test]
fn work_that_goes_to_a_waiter_starts_no_runner() {
    let machine = Machine::with(&USUAL.replace("pollInterval: 500ms", "pollInterval: 30s"));
    let project = machine.project("p");
    let waiter = project.spawn(&["tasks", "next", "--claim", "--wait", "5m", "--agent", "waiter"]);
    until("it waits", || project.select("SELECT count(*) FROM tickets") == ["1"]);
    project.stop_between_writes(waiter.pid());
    project.task("A", &[]);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["p"].0, "idle", "{decided:?}");
    assert!(decided["p"].1.contains("wait for it"), "{decided:?}");
    project.task("B", &[]);
    assert_eq!(machine.wake_up(&["--dry-run"])["p"].0, "started", "the second task is nobody's");
    waiter.signal(Signal::CONT);
    assert_eq!(waiter.end().code, Some(0));
}

#[test]
fn a_dry_run_tells_that_the_agent_cannot_be_started() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.configure("runners: {preset: absent}\npresets: {absent: {command: [no-such-agent-here]}}");
    project.task("A", &[]);
    let told = machine.run(&["--json", "runners", "wakeup", "--dry-run"]);
    let decided = machine.run(&["--json", "runners", "wakeup"]);
    assert_eq!((told.code, decided.code), (Some(0), Some(0)));
    let results = |answer: &tenure_testkit::cli::Answer| answer.json()["data"]["results"].clone();
    assert_eq!(results(&told), results(&decided));
    assert_eq!(results(&told)[0]["decision"], "parked");
}
