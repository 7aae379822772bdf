//! `doctor` after a crash: it finds what dead processes have left, and `--fix` repairs it.

use rustix::process::Signal;

use tenure_testkit::cli::{processes, until};

use crate::machine::Machine;

#[test]
fn what_a_killed_runner_leaves_is_found_and_fixed_and_the_living_are_left_alone() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["deaf", "fork", "away", "mark begun", "wait go"]);
    let pid = project.detached_runner(&[]);
    machine.wait_for("begun");
    assert_eq!(project.run(&["doctor"]).code, Some(0), "a runner at work is no problem");
    processes::signal(pid, Signal::KILL);
    until("it is dead", || !processes::is_alive(pid));
    let orphans = machine.agents();
    assert!(!orphans.is_empty());
    let other = machine.project("q");
    other.task("B", &["mark begun-B", "wait go"]);
    let living = other.detached_runner(&[]);
    machine.wait_for("begun-B");

    let found = project.run(&["--json", "doctor"]);
    assert_eq!(found.code, Some(7), "{found:?}");
    let error = found.json()["error"].clone();
    assert_eq!(error["code"], "CHECK_FAILED");
    let findings = error["details"]["findings"].as_array().unwrap().clone();
    let told = |check: &str| {
        let of: Vec<_> = findings.iter().filter(|f| f["check"] == check).collect();
        of.iter().map(|f| f["sentence"].as_str().unwrap()).collect::<Vec<_>>().join("; ")
    };
    assert!(told("runners").contains(&format!("(pid {pid}) is dead but still registered")), "{findings:?}");
    assert!(told("leases").contains("A was held by runner"), "{findings:?}");
    assert!(told("processes").contains("its processes are still running: "), "{findings:?}");
    assert!(!machine.agents().is_empty(), "finding is not ending");

    let fixed = project.run(&["--json", "doctor", "--fix"]);
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert!(fixed.json()["data"]["fixed"].as_array().unwrap().len() >= 3, "{fixed:?}");
    let left: Vec<_> = orphans.iter().filter(|pid| processes::is_alive(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(project.status("A"), "pending");
    assert!(processes::is_alive(living));
    assert_eq!(other.status("B"), "in_progress");
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    machine.give("go");
    other.wait_until("B", "completed");
}
