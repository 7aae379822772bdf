//! The database vanishes under a runner, as after `git clean -fdx`.

use crate::project::Project;

fn vanishing(remove: impl Fn(&Project), words: &str) {
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
fn a_deleted_database_ends_the_attempt_and_the_runner() {
    vanishing(|project| std::fs::remove_file(project.database()).unwrap(), "was deleted");
}

#[test]
fn a_deleted_folder_ends_the_attempt_and_the_runner() {
    vanishing(|project| std::fs::remove_dir_all(project.root().join(".tenure")).unwrap(), "was deleted");
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
    vanishing(replace, "was replaced by another file");
}

#[test]
fn an_idle_runner_notices_as_well() {
    let project = Project::hasty();
    let runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    std::fs::remove_file(project.database()).unwrap();
    let ran = runner.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("was deleted"), "{}", ran.err);
}
