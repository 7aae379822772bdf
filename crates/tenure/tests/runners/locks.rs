//! The exclusive lock: no attempt starts while it exists.

use rustix::process::Signal;

use crate::project::Project;

#[test]
fn a_runner_pauses_while_the_exclusive_lock_exists() {
    let project =
        Project::with("runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 500ms}");
    let mut runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    let pid = std::process::id().to_string();
    project.ok(&["exclusive", "acquire", "--holder", "backup", "--pid", &pid]);
    project.task("A", &["mark begun"]);
    project.wait_for_log(runner.pid(), "Skipping database (locked by backup)");
    let refused = project.run(&["--json", "runners", "start"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(project.marks("begun").is_empty());
    assert_eq!(project.status("A"), "pending");
    project.ok(&["exclusive", "release", "--force"]);
    project.wait_for("begun");
    project.wait_until("A", "completed");
    assert!(runner.is_running());
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_runner_waits_for_a_held_section_until_the_wait_timeout() {
    let project = Project::with(
        "runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 500ms, waitTimeout: 1s}",
    );
    project.ok(&["sections", "add", "Backend"]);
    project.task_in("A", &[], &["--section", "Backend"]);
    project.task_in("B", &["mark begun"], &["--section", "Backend"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "1h"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("Timed out waiting for section Backend"), "{}", ran.err);
    assert!(project.marks("begun").is_empty());
    assert_eq!(project.ok(&["locks", "show", "section:Backend"])["queue"], 0);
}

#[test]
fn the_log_distinguishes_all_done_from_nothing_ready() {
    let project = Project::new();
    project.task("A", &[]);
    project.task_in("B", &[], &["--depends-on", "A"]);
    project.ok(&["tasks", "update", "A", "--status", "failed"]);
    let blocked = project.work(&[]);
    assert!(blocked.err.contains("Nothing is ready: B waits for A"), "{}", blocked.err);
    project.ok(&["tasks", "retry", "A"]);
    let done = project.work(&[]);
    assert!(done.err.contains("Looking for tasks... none pending"), "{}", done.err);
    assert_eq!(done.code, Some(0));
}

#[test]
fn a_runner_pauses_for_the_exclusive_lock_of_beads_too() {
    let project =
        Project::with("runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 500ms}");
    let runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    let folder = project.root().join(".beads");
    std::fs::create_dir(&folder).unwrap();
    let held =
        r#"{"holder":"vc-executor","pid":1,"hostname":"elsewhere","started_at":"2026-01-02T03:04:05Z"}"#;
    std::fs::write(folder.join(".exclusive-lock"), held).unwrap();
    project.task("A", &["mark begun"]);
    project.wait_for_log(runner.pid(), "Skipping database (locked by vc-executor)");
    assert_eq!(project.run(&["runners", "start"]).code, Some(6));
    assert!(project.marks("begun").is_empty());
    std::fs::remove_file(folder.join(".exclusive-lock")).unwrap();
    project.wait_until("A", "completed");
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
}
