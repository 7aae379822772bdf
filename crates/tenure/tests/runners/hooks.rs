//! Hooks are told what a runner does, and never keep it from doing it.

use std::collections::BTreeSet;

use rustix::process::Signal;

use crate::world::{Project, until};

#[test]
fn a_hook_that_hangs_keeps_neither_the_heart_nor_the_work_back() {
    let project = Project::hasty();
    // Not asynchronous, and far longer than any lease lasts: whoever waited for it would lose everything.
    project.configure(
        "hooks:\n  - {name: stuck, event: runner.started, type: script, command: /bin/sleep, args: ['600'], timeout: 600s}\n  \
         - {name: stuck-too, event: task.completed, type: script, command: /bin/sleep, args: ['600'], timeout: 600s}",
    );
    project.task("A", &["mark first"]);
    project.task("B", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    assert_eq!(project.status("A"), "completed");
    let mut beats = BTreeSet::new();
    until("the heart has beaten on", || {
        let lock = project.locks().into_iter().find(|lock| lock["name"] == "B");
        beats.extend(lock.map(|lock| lock["heartbeatAt"].to_string()));
        beats.len() >= 12
    });
    project.give("go");
    project.wait_until("B", "completed");
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
    end_hooks(&project);
}

#[test]
fn a_runner_tells_of_its_start_its_tasks_and_its_end() {
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

/// The hooks outlive their runner on purpose; a test's must not outlive the test.
fn end_hooks(project: &Project) {
    let home = format!("TENURE_HOME={}", project.tenure_home().display());
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let ours = environ.split(|b| *b == 0).any(|var| var == home.as_bytes());
        if let (true, Some(pid)) = (ours, rustix::process::Pid::from_raw(pid)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}
