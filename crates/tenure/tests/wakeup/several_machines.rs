//! A project on a PostgreSQL server that several machines, or several folders of one, work on.

use crate::machine::Machine;

#[test]
fn work_that_another_machine_adds_is_noticed_although_no_file_here_changes() {
    let machine = Machine::new();
    let here = machine.project("here");
    assert_eq!(machine.wake_up(&[])["here"].0, "idle");
    let elsewhere = Machine::new();
    let there = elsewhere.bare_project("there");
    std::fs::copy(here.root().join(".tenure/config.yaml"), there.root().join(".tenure/config.yaml")).unwrap();
    there.ok(&["init"]);
    there.task("A", &["mark begun-A"]);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["here"].0, "started", "{decided:?}");
    machine.wait_for("begun-A");
}

#[test]
fn a_project_on_a_server_is_disabled_moved_and_missing_like_any_other() {
    let machine = Machine::new();
    let project = machine.project("old");
    project.task("A", &[]);
    project.ok(&["projects", "disable"]);
    assert_eq!(machine.wake_up(&[])["old"].0, "disabled");
    let new = machine.path("projects/new");
    std::fs::rename(project.root(), &new).unwrap();
    machine.ok(&["projects", "add", new.to_str().unwrap()]);
    machine.ok(&["projects", "disable", new.to_str().unwrap()]);
    let decided = machine.wake_up(&[]);
    assert_eq!((decided["old"].0.as_str(), decided["new"].0.as_str()), ("missing", "disabled"));
    assert!(decided["old"].1.ends_with(&format!("the same project is at {}", new.display())), "{decided:?}");
}
