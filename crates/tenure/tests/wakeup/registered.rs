//! A registered project is known to every command that serves or lists the projects of this machine, regardless of its
//! store.

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
    assert_eq!(
        project.database().exists(),
        !SUITE.is_on_postgres(),
        "the project is on the store of the suite"
    );
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

#[test]
fn a_folder_whose_path_is_not_utf8_is_refused_and_never_registered() {
    use std::os::unix::ffi::OsStrExt;

    let machine = Machine::new();
    let folder = machine.path("projects").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir_all(&folder).unwrap();
    let project = machine.project("p");
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(SUITE.binary);
        command.args(args);
        machine.surround(&mut command);
        command.current_dir(&folder);
        tenure_testkit::cli::Running::start(command).end()
    };
    let refused = run(&["init"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("is not UTF-8"), "{refused:?}");
    assert!(!folder.join(".tenure").exists());
    // A project that was moved there.
    std::fs::rename(project.root().join(".tenure"), folder.join(".tenure")).unwrap();
    for args in [
        &["status"][..],
        &["tasks", "add", "x"],
        &["runners", "start"],
        &["exclusive", "run", "--holder", "x", "--", "true"],
    ] {
        let refused = run(args);
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
        assert!(refused.err.contains("is not UTF-8"), "{args:?}: {refused:?}");
    }
    for args in [
        &["doctor"][..],
        &["--json", "doctor"],
        &["init"],
        &["projects", "add", "."],
        &["config", "show"],
        &["--json", "config", "show"],
        &["--json", "why"],
        &["--json", "exclusive", "status"],
        &["--json", "runners", "wakeup"],
    ] {
        let ended = run(args);
        assert!(ended.code.is_some_and(|code| code != 101), "{args:?}: {ended:?}");
    }
    let listed = machine.run(&["--json", "projects", "list"]).data();
    let paths: Vec<_> = listed["projects"].as_array().unwrap().iter().map(|p| p["path"].clone()).collect();
    assert_eq!(paths, [serde_json::json!(project.root())], "{listed}");
}
