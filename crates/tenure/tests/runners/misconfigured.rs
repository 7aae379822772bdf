//! A preset that cannot be started as configured is parked until that changes, and no task is charged.

use tenure_testkit::cli::{Answer, Running, until, write_program};

use crate::project::Project;

/// Reports that its task is done, regardless of its arguments.
const CLAUDE: &str = "#!/bin/sh\n/bin/cat >/dev/null\nexec tenure -q task done \"$TENURE_TASK_ID\"\n";

/// Nothing but these programs is on the search path.
fn command(project: &Project, args: &[&str]) -> std::process::Command {
    let mut command = project.command(args);
    command.env("PATH", project.sandbox().path("bin"));
    command
}

fn run(project: &Project, args: &[&str]) -> Answer {
    Running::start(command(project, args)).end()
}

fn wake_up(project: &Project, more: &[&str]) -> (String, String) {
    let answer = run(project, &[&["--json", "runners", "wakeup"], more].concat());
    let result = &answer.data()["results"][0];
    let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
    (text("decision"), text("reason"))
}

/// A project with claude, and the programs of its sandbox.
fn project() -> Project {
    project_with_idle_timeout("0s")
}

fn project_with_idle_timeout(limit: &str) -> Project {
    let project = Project::with(&format!(
        "runners:\n  preset: claude\n  killGrace: 300ms\n  idleTimeout: {limit}\nlocking: {{pollInterval: 1s}}"
    ));
    project.trust();
    write_program(&project.sandbox().path("bin/claude"), CLAUDE);
    install_sandbox(&project);
    project
}

fn install_sandbox(project: &Project) {
    for name in ["bwrap", "socat"] {
        write_program(&project.sandbox().path(&format!("bin/{name}")), "#!/bin/sh\n");
    }
}

fn remove_sandbox(project: &Project) {
    std::fs::remove_file(project.sandbox().path("bin/bwrap")).unwrap();
}

/// Asserts that the preset is parked as misconfigured, that every command reports this with the remedy, and that the task is
/// unchanged.
fn expect_parked(project: &Project, key: &str) {
    let status = project.ok(&["status"]);
    let parked = &status["parked"][0];
    let shown = ["kind", "name", "ending"].map(|field| parked[field].as_str().unwrap());
    assert_eq!(shown, ["preset", "claude", "misconfigured"], "{status}");
    let task = project.show(key);
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("pending"), Some(0)), "{task}");
    for words in [&["status"][..], &["why", key]] {
        let shown = run(project, words);
        let expected =
            "Preset claude is parked: its sandbox needs bwrap and socat, which were not found on PATH";
        assert!(shown.out.contains(expected), "{shown:?}");
    }
    let why = run(project, &["--json", "why", key]).json();
    let hints = why["hints"].to_string();
    assert!(hints.contains("tenure config set runners.allow"), "{why}");
}

fn expect_completed(project: &Project, key: &str) {
    project.wait_until(key, "completed");
    until("nothing is parked", || project.ok(&["status"])["parked"] == serde_json::json!([]));
    assert_eq!(project.show(key)["attempts"], 0);
}

#[test]
fn a_person_is_told_at_once_that_the_sandbox_is_missing() {
    let project = project();
    remove_sandbox(&project);
    project.task("A", &[]);
    let refused = run(&project, &["--json", "runners", "start"]);
    let error = &refused.json()["error"];
    assert_eq!((refused.code, error["code"].as_str()), (Some(3), Some("CONFIG_ERROR")), "{refused:?}");
    assert!(refused.out.contains("tenure config set runners.allow"), "{refused:?}");
    assert_eq!(project.status("A"), "pending");
    assert_eq!(project.ok(&["locks", "list"])["total"], 0);
}

#[test]
fn wake_up_parks_a_preset_without_its_sandbox_until_that_is_installed() {
    let project = project();
    remove_sandbox(&project);
    project.task("A", &[]);
    let (decision, reason) = wake_up(&project, &["--dry-run"]);
    assert_eq!(decision, "parked", "{reason}");
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]), "a dry run changes nothing");
    for _ in 0..2 {
        let (decision, reason) = wake_up(&project, &[]);
        assert_eq!(decision, "parked", "{reason}");
        assert!(reason.starts_with("preset claude is parked: its sandbox needs bwrap"), "{reason}");
    }
    expect_parked(&project, "A");
    assert_eq!(project.ok(&["status"])["parked"][0]["timesParked"], 1, "the second one did not try again");
    install_sandbox(&project);
    assert_eq!(wake_up(&project, &[]).0, "started");
    expect_completed(&project, "A");
}

#[test]
fn a_runner_whose_sandbox_vanishes_parks_its_preset_and_leaves_the_backlog() {
    let project = project_with_idle_timeout("1m");
    project.task("A", &[]);
    let runner = Running::start(command(&project, &["runners", "start", "--foreground"]));
    project.wait_until("A", "completed");
    remove_sandbox(&project);
    project.task("B", &[]);
    let ended = runner.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("preset claude is parked: its sandbox needs bwrap"), "{ended:?}");
    expect_parked(&project, "B");
    // Other agents can still claim the tasks that the parked preset cannot work on.
    project.task("C", &[]);
    let claimed = project.ok(&["tasks", "next", "--claim", "--agent", "ann"]);
    assert_eq!(claimed["task"]["key"], "B", "{claimed}");
    project.ok(&["tasks", "release", "B", "--agent", "ann"]);
    // Allowing commands changes the configuration, so that the preset is tried again.
    project.ok(&["config", "set", "runners.allow", "[make]"]);
    project.trust();
    assert_eq!(wake_up(&project, &[]).0, "started");
    expect_completed(&project, "B");
    project.wait_until("C", "completed");
}
