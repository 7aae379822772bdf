//! A usage limit, and any other condition that keeps an agent from working on every task, parks the preset at the first
//! occurrence and charges no task.

use std::time::Duration;

use serde_json::Value;
use tenure_core::{Clock, SystemClock, Timestamp};

use tenure_testkit::cli::until;

use crate::project::Project;

const CONFIG: &str = "runners: {preset: pretend-claude, killGrace: 300ms}\nlocking: {pollInterval: 1s}";
const USAGE_LIMIT: &str = include_str!("../../../tenure-runner/tests/agent-recordings/claude-usage-5h.out");
const NOT_LOGGED_IN: &str =
    include_str!("../../../tenure-runner/tests/agent-recordings/claude-notloggedin.out");
const NO_CONNECTION: &str =
    r#"{"type":"system","subtype":"api_retry","error_status":null,"error":"unknown"}"#;

/// The recorded limit, with a reset in an hour.
fn limit() -> (String, Timestamp) {
    let seconds = SystemClock.now().as_millis() / 1000 + 3600;
    let output = USAGE_LIMIT.replace("1794824450", &seconds.to_string());
    assert_ne!(output, USAGE_LIMIT);
    (output, Timestamp::from_millis(seconds * 1000))
}

fn time(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

fn charged_attempts(project: &Project) -> usize {
    project.feed().iter().filter(|event| event["detail"]["charged"] == true).count()
}

/// Asserts that no task has failed, not even for a moment, and that none was charged.
fn expect_no_loss(project: &Project, keys: &[String], status: &str) {
    for key in keys {
        let task = project.show(key);
        assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some(status), Some(0)), "{task}");
        assert_eq!(project.moves(key, "failed"), 0, "{key}");
    }
    assert_eq!(charged_attempts(project), 0);
}

fn a_usage_limit_against_a_backlog_of(count: usize) {
    let project = Project::with(CONFIG);
    let called = ["task.failed", "runner.failed"].map(|event| project.shared(event));
    let hooks = called.each_ref().map(|file| {
        let (event, file) = (file.file_name().unwrap().display(), file.display());
        format!("\n  - {{name: {event}, event: {event}, type: script, command: touch, args: ['{file}']}}")
    });
    project.configure(&format!("hooks:{}", hooks.concat()));
    let keys: Vec<String> = (1..=count).map(|n| format!("T{n}")).collect();
    for key in &keys {
        project.task(key, &["mark tried", "replay limit", "mark worked"]);
    }
    let (output, reset) = limit();
    std::fs::write(project.shared("limit"), output).unwrap();

    let ran = project.work(&[]);
    let said = "You've hit your session limit · resets 10:20am (UTC)";
    let reason = format!("claude reports a usage limit until {}: {said}", reset.to_seconds());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(&format!("Ended T1: {reason}; the task is pending again")), "{}", ran.err);
    assert!(ran.err.contains(&format!("preset pretend-claude is parked: {reason}")), "{}", ran.err);
    assert_eq!(project.marks("tried").len(), 1, "parked at the first ending");
    expect_no_loss(&project, &keys, "pending");
    until("the hook for the runner's end has run", || called[1].exists());
    assert!(project.locks().is_empty());

    let parked = &project.ok(&["status"])["parked"][0];
    assert_eq!(parked["reason"], reason);
    let next = time(&parked["nextTryAt"]);
    assert!(next >= reset && next <= reset.after(Duration::from_mins(1)), "{parked}");
    for args in [&["status"][..], &["why"], &["doctor"]] {
        let shown = project.run(args).out;
        let sentence = format!("pretend-claude is parked: {reason}; wake-up retries it in ");
        assert!(shown.contains(&sentence), "{args:?}: {shown}");
    }

    // The limit is over.
    std::fs::remove_file(project.shared("limit")).unwrap();
    let again = project.work(&[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(project.marks("worked").len(), count);
    expect_no_loss(&project, &keys, "completed");
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]));
    assert!(!called[0].exists(), "no hook for a failed task has run");
}

#[test]
fn a_usage_limit_fails_and_charges_no_task_of_a_backlog_of_two() {
    a_usage_limit_against_a_backlog_of(2);
}

#[test]
fn a_usage_limit_fails_and_charges_no_task_of_a_backlog_of_ten() {
    a_usage_limit_against_a_backlog_of(10);
}

#[test]
fn without_a_known_reset_the_pause_is_a_minute_and_doubles() {
    let project = Project::with(CONFIG);
    project.task("A", &["replay login"]);
    std::fs::write(project.shared("login"), NOT_LOGGED_IN).unwrap();
    for minutes in [1, 2] {
        let ran = project.work(&[]);
        let parked = "preset pretend-claude is parked: claude is not logged in, or its key was refused";
        assert!(ran.err.contains(parked), "{}", ran.err);
        let shown = &project.ok(&["status"])["parked"][0];
        assert_eq!(time(&shown["nextTryAt"]).since(time(&shown["parkedAt"])), Duration::from_mins(minutes));
    }
    expect_no_loss(&project, &["A".to_owned()], "pending");
}

#[test]
fn a_limit_during_a_review_leaves_the_task_in_review_and_counts_no_rejection() {
    let project = Project::with(
        "runners: {preset: pretend, killGrace: 300ms}\nreview: {enabled: true, preset: pretend-claude-judge}\n\
         locking: {pollInterval: 1s}",
    );
    project.task("A", &["mark worked", "review: replay limit"]);
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    let ran = project.work(&[]);
    assert!(
        ran.err.contains("preset pretend-claude-judge is parked: claude reports a usage limit"),
        "{}",
        ran.err
    );
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["rejections"].as_u64()), (Some("review"), Some(0)), "{task}");
    expect_no_loss(&project, &["A".to_owned()], "review");
    std::fs::remove_file(project.shared("limit")).unwrap();
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!(project.status("A"), "completed");
    assert_eq!(project.marks("worked").len(), 1);
}

#[test]
fn an_agent_that_hangs_without_a_network_does_not_charge_its_task() {
    let project = Project::with(
        "runners: {preset: pretend-claude, killGrace: 300ms, subprocessHangTimeout: 1s}\nlocking: {pollInterval: 1s}",
    );
    project.task("A", &[&format!("print {NO_CONNECTION}"), "hang"]);
    let ran = project.work(&[]);
    let reason = "claude cannot reach its provider over the network";
    assert!(ran.err.contains(&format!("preset pretend-claude is parked: {reason}")), "{}", ran.err);
    expect_no_loss(&project, &["A".to_owned()], "pending");
    project.expect_no_agents();
}

#[test]
fn a_task_that_the_agent_finished_before_the_limit_stays_finished() {
    let project = Project::with(CONFIG);
    project.task("A", &["tenure task done A", "replay limit"]);
    project.task("B", &["mark b"]);
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    let ran = project.work(&[]);
    assert!(ran.err.contains("preset pretend-claude is parked: claude reports a usage limit"), "{}", ran.err);
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "pending"));
    assert!(project.marks("b").is_empty());
}

#[test]
fn an_agent_that_only_mentions_a_limit_fails_its_task_as_usual() {
    let project = Project::with(CONFIG);
    let talk = r#"print {"type":"assistant","message":{"content":[{"type":"text","text":"You've hit your usage limit (429)"}]}}"#;
    project.task("A", &[talk, "exit 1"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.status("A"), "failed");
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]));
}
