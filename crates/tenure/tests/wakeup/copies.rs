//! Wake-up and a registered copy of a project whose runner is at work.

use std::process::Command;

use tenure_testkit::cli::processes;

use crate::machine::{Machine, make_silent};

#[test]
fn wake_up_in_a_copy_leaves_the_runner_of_the_original_alone() {
    let machine = Machine::new();
    let project = machine.project("original");
    project.task("A", &["mark begun", "hang"]);
    let runner = project.detached_runner(&[]);
    machine.wait_for("begun");
    let agents = machine.agents();
    let copy = machine.bare_project("copy");
    std::fs::remove_dir(copy.root()).unwrap();
    assert!(Command::new("cp").arg("-r").arg(project.root()).arg(copy.root()).status().unwrap().success());
    let made = copy.run(&["init"]);
    assert!(made.code == Some(0) && made.out.contains("tenure store adopt"), "{made:?}");
    copy.trust();
    make_silent(&copy);
    let answer = machine.run(&["--json", "runners", "wakeup"]);
    let decided = crate::machine::decisions(&answer.json()["data"]);
    assert_eq!((decided["original"].0.as_str(), decided["copy"].0.as_str()), ("running", "error"));
    assert!(decided["copy"].1.contains("tenure store adopt"), "{decided:?}");
    assert!(processes::is_alive(runner));
    assert_eq!(machine.agents(), agents);
    copy.ok(&["store", "adopt"]);
    assert_eq!(machine.wake_up(&[])["copy"].0, "started");
    assert!(processes::is_alive(runner));
}
