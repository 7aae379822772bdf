//! Hooks are called for what a runner does, and never delay it.

use std::collections::BTreeSet;

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn a_hook_that_hangs_delays_neither_the_heartbeat_nor_the_work() {
    let project = Project::hasty();
    // Not asynchronous, and far longer than any lease lasts: a runner that waited for it would lose its leases.
    project.configure(
        "hooks:\n  - {name: stuck, event: runner.started, type: script, command: /bin/sleep, args: ['600'], timeout: 600s}\n  \
         - {name: stuck-too, event: task.completed, type: script, command: /bin/sleep, args: ['600'], timeout: 600s}",
    );
    project.task("A", &["mark first"]);
    project.task("B", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    assert_eq!(project.status("A"), "completed");
    let mut renewals = BTreeSet::new();
    until("the lease has been renewed many times", || {
        let lock = project.locks().into_iter().find(|lock| lock["name"] == "B");
        renewals.extend(lock.map(|lock| lock["heartbeatAt"].to_string()));
        renewals.len() >= 12
    });
    project.give("go");
    project.wait_until("B", "completed");
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_runner_reports_its_start_its_tasks_and_its_end() {
    let project = Project::new();
    let told = project.root().join("told");
    std::fs::create_dir(&told).unwrap();
    let events = ["runner.started", "runner.stopped", "task.completed", "task.failed", "project.completed"];
    let hooks = events.map(|event| {
        let file = told.join(event);
        format!(
            "\n  - {{name: {event}, event: {event}, type: script, command: touch, args: ['{}']}}",
            file.display()
        )
    });
    project.configure(&format!("hooks:{}", hooks.concat()));
    project.task("A", &[]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for event in ["runner.started", "runner.stopped", "task.completed", "project.completed"] {
        until(event, || told.join(event).exists());
    }
    assert!(!told.join("task.failed").exists());
}
