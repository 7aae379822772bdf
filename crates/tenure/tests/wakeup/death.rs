//! A whole machine dies: every runner at once, and only their agents are left behind.

use rustix::process::Signal;

use tenure_testkit::cli::{Project, full_or, processes, until};

use crate::SUITE;
use crate::machine::Machine;

/// Projects with a runner each, whose agents have begun something that they will not finish, and more to do after it.
fn busy(machine: &Machine, count: usize) -> Vec<Project> {
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

fn all_backlogs_finish(machine: &Machine, projects: &[Project]) {
    machine.give("go");
    for project in projects {
        for key in ["A", "B"] {
            project.wait_until(key, "completed");
            assert_eq!(project.moves(key, "completed"), 1);
        }
    }
    until("nothing is left", || machine.tenures().is_empty() && machine.agents().is_empty());
}

fn everything_is_restarted_once(machine: &Machine, projects: &[Project], before: &[u32]) {
    let decided = machine.wake_up(&[]);
    assert_eq!(decided.len(), projects.len());
    assert!(decided.values().all(|(decision, _)| decision == "restarted"), "{decided:#?}");
    let now = machine.agents();
    let left: Vec<_> = before.iter().filter(|pid| now.contains(pid)).collect();
    assert!(left.is_empty(), "agents of the dead are alive: {left:?}");
    for project in projects {
        assert_eq!(project.runners().len(), 1, "{project:?}");
    }
}

#[test]
fn after_the_death_of_every_runner_one_wake_up_restarts_everything() {
    let machine = Machine::new();
    let count = if SUITE.is_on_postgres() { full_or(20, 6) } else { 20 };
    let projects = busy(&machine, count);
    let runners = machine.tenures();
    assert!(runners.len() >= count, "{runners:?}");
    for pid in runners {
        processes::signal(pid, Signal::KILL);
    }
    until("every runner is dead", || machine.tenures().is_empty());
    let before = machine.agents();
    assert!(before.len() >= count, "agents are left behind, deaf or in a session of their own: {before:?}");
    everything_is_restarted_once(&machine, &projects, &before);
    all_backlogs_finish(&machine, &projects);
}

#[test]
fn after_a_reboot_one_wake_up_restarts_everything() {
    let machine = Machine::new();
    let projects = busy(&machine, full_or(20, if SUITE.is_on_postgres() { 3 } else { 6 }));
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
        everything_is_restarted_once(&machine, &projects, &[]);
    }
    all_backlogs_finish(&machine, &projects);
    if !SUITE.is_on_postgres() {
        assert_eq!(projects[0].show("A")["attempts"], 0, "a power cut is not charged");
    }
}
