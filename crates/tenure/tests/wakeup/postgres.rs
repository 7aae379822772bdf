//! A project whose rows are on a PostgreSQL server, and that has no database file.

use serde_json::Value;
use tenure_testkit::postgres::Cluster;

use crate::machine::{Machine, Project};

fn on_server<'m>(machine: &'m Machine, name: &str) -> Project<'m> {
    let root = machine.path("projects").join(name);
    std::fs::create_dir_all(root.join(".tenure")).unwrap();
    let config = format!("project: {{name: {name}}}\nstore: {{url: '{}'}}\n", Cluster::shared().url());
    std::fs::write(root.join(".tenure/config.yaml"), config).unwrap();
    let project = Project { machine, root };
    project.ok(&["init"]);
    assert!(!project.database().exists());
    project
}

#[test]
fn a_project_on_a_server_is_served_and_listed_like_any_other() {
    let machine = Machine::new();
    let project = on_server(&machine, "shop");
    project.task("A", &["mark begun-A", "wait go-A"]);

    let listed = machine.ok(&["projects", "list"]);
    assert_eq!(listed["projects"][0]["state"], "enabled", "{listed}");
    let all = machine.run(&["--json", "tasks", "list", "--global"]);
    assert_eq!(all.data()["tasks"][0]["key"], "A", "{all:?}");
    assert!(!all.err.contains("no longer exists"), "{all:?}");
    let doctor = project.ok(&["doctor"]);
    let registry = |list: &str| -> Vec<Value> {
        let all = doctor[list].as_array().unwrap().iter();
        all.filter(|row| row["check"] == "registry").cloned().collect()
    };
    assert!(registry("findings").is_empty(), "{doctor}");
    assert_eq!(registry("checks")[0]["result"], "wake-up is enabled for this project");

    let decided = machine.wake_up(&[]);
    assert_eq!(decided["shop"].0, "started", "{decided:?}");
    machine.wait_for("begun-A");
    assert_eq!(project.runners().len(), 1);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["shop"].0, "running", "{decided:?}");
    machine.give("go-A");
    project.wait_until("A", "completed");
}

#[test]
fn work_that_another_machine_adds_is_noticed_although_no_file_here_changes() {
    let machine = Machine::new();
    let here = on_server(&machine, "here");
    assert_eq!(machine.wake_up(&[])["here"].0, "idle");
    let elsewhere = Machine::new();
    let there = Project { machine: &elsewhere, root: elsewhere.path("projects/there") };
    std::fs::create_dir_all(there.root.join(".tenure")).unwrap();
    std::fs::copy(here.root.join(".tenure/config.yaml"), there.root.join(".tenure/config.yaml")).unwrap();
    there.ok(&["init"]);
    there.task("A", &["mark begun-A"]);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["here"].0, "started", "{decided:?}");
    machine.wait_for("begun-A");
}

#[test]
fn a_project_on_a_server_is_disabled_moved_and_missing_like_any_other() {
    let machine = Machine::new();
    let project = on_server(&machine, "old");
    project.task("A", &[]);
    project.ok(&["projects", "disable"]);
    assert_eq!(machine.wake_up(&[])["old"].0, "disabled");
    let new = machine.path("projects/new");
    std::fs::rename(&project.root, &new).unwrap();
    machine.ok(&["projects", "add", new.to_str().unwrap()]);
    machine.ok(&["projects", "disable", new.to_str().unwrap()]);
    let decided = machine.wake_up(&[]);
    assert_eq!((decided["old"].0.as_str(), decided["new"].0.as_str()), ("missing", "disabled"));
    assert!(decided["old"].1.ends_with(&format!("the same project is at {}", new.display())), "{decided:?}");
}
