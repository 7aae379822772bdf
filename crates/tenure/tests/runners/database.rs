//! The database file of a runner: it vanishes, as after `git clean -fdx`, or another program keeps it locked.

use crate::project::Project;

fn assert_ends_when(remove: impl Fn(&Project), words: &str) {
    let project = Project::hasty();
    project.task("A", &["deaf", "fork", "mark begun", "hang"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    remove(&project);
    let ran = runner.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(words), "{}", ran.err);
    let last = ran.err.lines().rev().find(|line| line.contains("database")).unwrap();
    assert!(last.contains(words), "the last line names the cause: {}", ran.err);
    project.expect_no_agents();
}

#[test]
fn an_outcome_waits_for_another_program_that_keeps_the_database_locked() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let runner = project.runner(&["--timeout", "1s"]);
    project.wait_for("begun");
    let held = project.hold_database();
    project.give("go");
    project.wait_for_log(runner.pid(), "The store does not answer");
    drop(held);
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn a_deleted_database_ends_the_attempt_and_the_runner() {
    assert_ends_when(|project| std::fs::remove_file(project.database()).unwrap(), "was deleted");
}

#[test]
fn a_deleted_folder_ends_the_attempt_and_the_runner() {
    assert_ends_when(
        |project| std::fs::remove_dir_all(project.root().join(".tenure")).unwrap(),
        "was deleted",
    );
}

#[test]
fn a_replaced_database_ends_the_attempt_and_the_runner() {
    let replace = |project: &Project| {
        let (old, new) = (project.database(), project.root().join("new.db"));
        for side in ["", "-wal", "-shm"] {
            let of = |path: &std::path::Path| std::path::PathBuf::from(format!("{}{side}", path.display()));
            if of(&old).exists() {
                std::fs::copy(of(&old), of(&new)).unwrap();
                std::fs::rename(of(&new), of(&old)).unwrap();
            }
        }
    };
    assert_ends_when(replace, "was replaced by another file");
}

#[test]
fn deleting_the_database_ends_an_idle_runner() {
    let project = Project::hasty();
    let runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    std::fs::remove_file(project.database()).unwrap();
    let ran = runner.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("was deleted"), "{}", ran.err);
}
