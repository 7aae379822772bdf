//! The database is replaced under processes that wait, as after `git clean -fdx` and `tenure init`.

use std::path::Path;

use tenure_testkit::cli::{Running, until};

use crate::harness::Project;

const CONFIG: &str = "locking: {pollInterval: 1s}";

fn begin() -> Project {
    let project = Project::with_config(CONFIG);
    project.add("F", 1);
    project
}

fn replace(project: &Project) {
    std::fs::rename(project.root().join(".tenure"), project.root().join("before")).unwrap();
    project.init(&[]);
    project.add("F", 1);
}

fn has_open(pid: u32, file: &Path) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|target| target == file))
}

#[track_caller]
fn assert_ends_with_the_reason(process: Running) {
    let ended = process.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // The last reason occurs if the process was still opening the database.
    let reasons = ["was replaced by another file", "was deleted", "it does not exist"];
    let known = reasons.iter().any(|reason| ended.err.contains(reason));
    assert!(known, "{ended:?}");
}

#[test]
fn a_waiter_is_granted_nothing_in_a_database_that_was_replaced() {
    for wanted in [&["tasks", "claim", "F1", "--wait"][..], &["tasks", "next", "--claim", "--wait"]] {
        let project = begin();
        project.ok(&["tasks", "claim", "F1", "--agent", "ann", "--ttl", "2s"]);
        let waiter = project.spawn(&[wanted, &["--agent", "w"]].concat());
        until("it is queued", || project.ok(&["status"])["waiting"] == 1);
        replace(&project);
        project.ok(&["tasks", "claim", "F1", "--agent", "carl"]);
        assert_ends_with_the_reason(waiter);
        assert_eq!(project.show("F1")["lease"]["holder"]["id"], "carl");
    }
}

#[test]
fn readers_that_wait_end_when_the_database_is_replaced() {
    for waits in [&["events", "--follow"][..], &["msg", "wait", "--agent", "w"]] {
        let project = begin();
        let reader = project.spawn(waits);
        until("it has opened the database", || has_open(reader.pid(), &project.database()));
        replace(&project);
        assert_ends_with_the_reason(reader);
    }
}
