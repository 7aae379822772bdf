//! Rows that tenure did not write: a runner reports them and ends, because waiting for the store would never
//! end.

use crate::project::Project;

#[test]
fn a_row_that_tenure_did_not_write_ends_the_runner_and_is_named() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    project.task("B", &["mark wrong"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    project.sql("UPDATE tasks SET key = '../../B' WHERE key = 'B'");
    project.give("go");
    let ran = runner.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let id = &project.select("SELECT id FROM tasks WHERE key = '../../B'")[0];
    for words in ["\"../../B\"", "table tasks", id] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert!(!ran.err.contains("does not answer"), "{}", ran.err);
    assert!(project.marks("wrong").is_empty());
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn an_outcome_that_a_damaged_store_refuses_is_kept_and_written_later() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let id = project.select("SELECT id FROM tasks WHERE key = 'A'").remove(0);
    project.sql("UPDATE tasks SET key = '../../A' WHERE key = 'A'");
    project.give("go");
    let ran = runner.end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("The outcome of A is kept"), "{}", ran.err);
    project.sql(&format!("UPDATE tasks SET key = 'A' WHERE id = '{id}'"));
    project.ok(&["locks", "cleanup"]);
    assert_eq!(project.status("A"), "completed");
}
