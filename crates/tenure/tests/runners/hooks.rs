//! Hooks run for what a runner does, and never delay it.

use std::collections::BTreeSet;

use rustix::process::Signal;

use tenure_testkit::cli::{until, write_program};

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
fn an_outcome_is_reported_once_whether_by_the_agent_or_by_its_exit_code() {
    let project = Project::new();
    let calls = project.root().join("calls");
    write_program(&project.root().join("note.sh"), "#!/bin/sh\necho \"$TENURE_EVENT $1\" >> calls\n");
    let hooks = [("task.completed", "{{task.key}}"), ("task.failed", "{{task.key}}"), ("runner.stopped", "")];
    let hooks = hooks.map(|(event, arg)| {
        format!("\n  - {{name: {event}, event: {event}, type: script, command: ./note.sh, args: ['{arg}']}}")
    });
    project.configure(&format!("hooks:{}", hooks.concat()));
    project.task("A", &["tenure task done A"]);
    project.task("B", &["tenure task fail B -m 'no chance'"]);
    project.task("C", &[]);
    project.task("D", &["exit 1"]);
    project.work(&[]);
    let lines = || -> Vec<String> {
        let text = std::fs::read_to_string(&calls).unwrap_or_default();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    };
    // A runner's hooks run asynchronously. The last event is reported after all others.
    until("the hooks have run", || {
        let lines = lines();
        ["task.completed C", "task.failed D", "runner.stopped"]
            .iter()
            .all(|last| lines.iter().any(|l| l == last))
    });
    let mut told: Vec<String> = lines().into_iter().filter(|line| line.starts_with("task.")).collect();
    told.sort();
    assert_eq!(told, ["task.completed A", "task.completed C", "task.failed B", "task.failed D"]);
}

#[test]
fn a_runner_reports_its_start_its_tasks_and_its_end() {
    let project = Project::new();
    let called = project.root().join("called");
    std::fs::create_dir(&called).unwrap();
    let events = ["runner.started", "runner.stopped", "task.completed", "task.failed", "project.completed"];
    let hooks = events.map(|event| {
        let file = called.join(event);
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
        until(event, || called.join(event).exists());
    }
    assert!(!called.join("task.failed").exists());
}
