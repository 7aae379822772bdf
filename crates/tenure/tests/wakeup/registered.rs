//! A registered project is known to every command that serves or lists the projects of this machine, whatever its store.

use serde_json::Value;

use crate::SUITE;
use crate::machine::{Machine, decisions};

/// The entry whose `path` is `path`.
fn entry<'v>(list: &'v Value, path: &std::path::Path) -> &'v Value {
    let found = list.as_array().unwrap().iter().find(|entry| entry["path"] == path.to_str().unwrap());
    found.unwrap_or_else(|| panic!("{} is not in {list}", path.display()))
}

#[test]
fn wake_up_serves_a_project_that_init_has_registered() {
    let machine = Machine::new();
    let project = machine.project("p");
    assert_eq!(project.database().exists(), !SUITE.is_on_postgres(), "the rows are where the suite says");
    project.task("A", &["mark begun"]);
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
    project.wait_until("A", "completed");
}

#[test]
fn wake_up_serves_a_project_that_was_removed_only_after_it_is_added_again() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["projects", "remove"]);
    assert!(machine.wake_up(&[]).is_empty());
    project.ok(&["projects", "add"]);
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
}

#[test]
fn projects_list_shows_a_registered_project_as_present() {
    let machine = Machine::new();
    let project = machine.project("p");
    let listed = machine.ok(&["projects", "list"]);
    let shown = entry(&listed["projects"], project.root());
    assert_ne!(shown["state"], "missing", "{listed}");
    assert_eq!(shown["enabled"], true, "{listed}");
    let gone = machine.project("gone");
    std::fs::remove_dir_all(gone.root()).unwrap();
    let listed = machine.ok(&["projects", "list"]);
    assert_eq!(entry(&listed["projects"], gone.root())["state"], "missing", "{listed}");
}

#[test]
fn tasks_list_global_includes_the_tasks_of_every_registered_project() {
    let machine = Machine::new();
    for name in ["p", "q"] {
        machine.project(name).task(&format!("T-{name}"), &[]);
    }
    let answer = machine.run(&["--json", "tasks", "list", "--global"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for name in ["p", "q"] {
        assert!(answer.out.contains(&format!("T-{name}")), "{answer:?}");
    }
    assert!(
        !answer.out.contains("projects remove") && answer.err.is_empty(),
        "nothing is missing: {answer:?}"
    );
}

#[test]
fn doctor_does_not_call_a_registered_project_missing() {
    let machine = Machine::new();
    let project = machine.project("p");
    machine.project("q");
    let answer = project.run(&["--json", "doctor"]);
    assert!(!answer.out.contains("projects remove"), "{answer:?}");
}

#[test]
fn a_disabled_project_is_not_served_until_it_is_enabled() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["projects", "disable"]);
    let answer = machine.run(&["--json", "runners", "wakeup"]);
    assert_eq!(decisions(&answer.json()["data"])["p"].0, "disabled", "{answer:?}");
    project.ok(&["projects", "enable"]);
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
}
