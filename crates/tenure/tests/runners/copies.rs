//! Commands in a copy of a project whose runner is at work.

use std::process::Command;

use tenure_testkit::cli::{self, processes, until};

use crate::project::Project;

/// A runner at work, and a copy of its project as `cp -r` makes it.
fn copied() -> (Project, cli::Running, cli::Project) {
    let project = Project::hasty();
    project.task("A", &["mark begun", "hang"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let copy = project.sandbox().bare_project("copy");
    std::fs::remove_dir(copy.root()).unwrap();
    let done = Command::new("cp").arg("-r").arg(project.root()).arg(copy.root()).status().unwrap();
    assert!(done.success());
    (project, runner, copy)
}

fn assert_at_work(project: &Project, runner: &mut cli::Running, agents: &[u32]) {
    assert!(runner.is_running());
    assert_eq!(project.agents(), agents);
    assert!(agents.iter().all(|pid| processes::is_alive(*pid)));
    assert_eq!(project.status("A"), "in_progress");
}

#[test]
fn work_in_a_copy_never_ends_the_attempt_of_the_original() {
    let (project, mut runner, copy) = copied();
    let agents = project.agents();
    until("the lease has expired in the copy", || {
        copy.ok(&["locks", "list"])["locks"].as_array().unwrap().iter().all(|lock| lock["expired"] == true)
    });
    for changing in [
        &["tasks", "claim", "A", "--agent", "ann"][..],
        &["tasks", "run", "A", "--", "true"],
        &["tasks", "add", "New"],
        &["locks", "cleanup"],
        &["runners", "start", "--foreground"],
    ] {
        let refused = copy.run(&[&["--json"], changing].concat());
        assert_eq!(refused.json()["error"]["code"], "STORE_COPIED", "{refused:?}");
    }
    let listed = copy.run(&["tasks", "list"]);
    assert!(listed.code == Some(0) && listed.err.contains("tenure store adopt"), "{listed:?}");
    assert_at_work(&project, &mut runner, &agents);

    let before = project.ok(&["config", "get", "project.id"]);
    let adopted = copy.ok(&["store", "adopt"]);
    assert_eq!((&adopted["adopted"], &adopted["ended"]["attempts"]), (&true.into(), &1.into()), "{adopted}");
    assert_ne!(copy.ok(&["config", "get", "project.id"]), before);
    assert_eq!(copy.ok(&["store", "adopt"])["adopted"], false);
    let granted = copy.run(&["--json", "tasks", "claim", "A", "--agent", "ann"]);
    assert!(granted.code == Some(0) && granted.err.is_empty(), "{granted:?}");
    assert_eq!(copy.select("SELECT attempts FROM tasks"), ["0"]);
    assert_at_work(&project, &mut runner, &agents);
    assert_ne!(project.store().id().unwrap(), copy.store().id().unwrap());
}

#[test]
fn a_moved_folder_is_no_copy() {
    let project = Project::new();
    project.task("A", &[]);
    let moved = project.sandbox().bare_project("moved");
    std::fs::remove_dir(moved.root()).unwrap();
    std::fs::rename(project.root(), moved.root()).unwrap();
    let claimed = moved.run(&["--json", "tasks", "claim", "A", "--agent", "ann"]);
    assert!(claimed.code == Some(0) && claimed.err.is_empty(), "{claimed:?}");
}
