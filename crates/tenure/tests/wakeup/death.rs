//! A whole machine dies: every runner at once, and only their agents are left behind.

use rustix::process::Signal;

use crate::machine::{Machine, Project};
use crate::processes;
use crate::world::{full_or, until};

/// Projects with a runner each, whose agents have begun something that they will not finish, and more to do after it.
fn busy(machine: &Machine, count: usize) -> Vec<Project<'_>> {
    let projects: Vec<_> = (0..count).map(|n| machine.project(&format!("p{n}"))).collect();
    for (n, project) in projects.iter().enumerate() {
        project.task("A", &["deaf", "fork", "away", &format!("mark begun-{n}"), "wait go"]);
        project.task("B", &["print two"]);
    }
    for project in &projects {
        project.runner(&[]);
    }
    for n in 0..count {
        machine.wait_for(&format!("begun-{n}"));
    }
    projects
}

fn all_backlogs_finish(machine: &Machine, projects: &[Project<'_>]) {
    machine.give("go");
    for project in projects {
        for key in ["A", "B"] {
            project.wait_until(key, "completed");
            assert_eq!(project.moves(key, "completed"), 1);
        }
    }
    until("nothing is left", || machine.tenures().is_empty() && machine.agents().is_empty());
}

fn everything_is_restarted_once(machine: &Machine, projects: &[Project<'_>], before: &[u32]) {
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
fn after_the_death_of_every_runner_one_wake_up_brings_everything_going_again() {
    let machine = Machine::new();
    let count = full_or(20, 20);
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
fn after_a_reboot_one_wake_up_brings_everything_going_again() {
    let machine = Machine::new();
    let projects = busy(&machine, full_or(20, 6));
    for pid in machine.tenures().into_iter().chain(machine.agents()) {
        processes::signal(pid, Signal::KILL);
    }
    until("the machine is down", || machine.tenures().is_empty() && machine.agents().is_empty());
    // Whatever was recorded, was recorded in an earlier boot; and another process has each of the numbers now.
    let me = std::process::id();
    for project in &projects {
        for (table, column) in
            [("leases", "process"), ("runners", "process"), ("attempts", "owner"), ("tickets", "process")]
        {
            project.sql(&format!(
                "UPDATE {table} SET {column} = json_set({column}, '$.boot_id', 'boot before', '$.pid', {me})
                 WHERE {column} IS NOT NULL"
            ));
        }
    }
    everything_is_restarted_once(&machine, &projects, &[]);
    all_backlogs_finish(&machine, &projects);
    let shown = projects[0].ok(&["tasks", "show", "A"])["task"]["attempts"].clone();
    assert_eq!(shown, 0, "a power cut is nobody's fault");
}
