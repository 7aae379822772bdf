//! A usage limit, and any other condition that keeps an agent from working on every task, parks the preset at the first
//! occurrence and charges no task.

use std::time::Duration;

use serde_json::Value;
use tenure_core::{Clock, SystemClock, Timestamp};

use tenure_testkit::cli::{full_or, until};

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

fn is_full() -> bool {
    full_or(1, 0) == 1
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
        let done = format!("tenure task done {key}");
        project.task(key, &["mark tried", "replay limit", "mark worked", &done]);
    }
    let (output, reset) = limit();
    std::fs::write(project.shared("limit"), output).unwrap();

    let ran = project.work(&[]);
    let said = "You've hit your session limit · resets 10:20am (UTC)";
    let reason = format!("claude reports a usage limit until {}: {said}", reset.to_seconds());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains(&format!("Ended T1: {reason}; the task is pending again")), "{}", ran.err);
    assert!(ran.err.contains(&format!("account claude is parked: {reason}")), "{}", ran.err);
    assert_eq!(project.marks("tried").len(), 1, "parked at the first ending");
    expect_no_loss(&project, &keys, "pending");
    until("the hook for the runner's end has run", || called[1].exists());
    assert!(project.locks().is_empty());

    let parked = &project.ok(&["status"])["parked"][0];
    assert_eq!((parked["kind"].as_str(), parked["name"].as_str()), (Some("account"), Some("claude")));
    assert_eq!(
        (parked["ending"].as_str(), parked["reason"].as_str()),
        (Some("limited"), Some(reason.as_str()))
    );
    assert_eq!(time(&parked["resetsAt"]), reset);
    let next = time(&parked["nextTryAt"]);
    assert!(next >= reset && next <= reset.after(Duration::from_mins(1)), "{parked}");
    for args in [&["status"][..], &["why"], &["doctor"]] {
        let shown = project.run(args).out;
        let sentence = format!("Account claude is parked: {reason}; wake-up tries it again in ");
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
fn the_pause_without_a_known_reset_depends_on_the_ending_and_doubles() {
    let overloaded = NOT_LOGGED_IN.replace("authentication_failed", "overloaded");
    assert_ne!(overloaded, NOT_LOGGED_IN);
    let refused = NOT_LOGGED_IN.replace("authentication_failed", "model_not_found");
    for (output, subject, pauses) in [
        (NOT_LOGGED_IN, "account", [Some(3600), Some(3600)]),
        (overloaded.as_str(), "account", [Some(60), Some(120)]),
        (NO_CONNECTION, "host", [Some(30), Some(60)]),
        (refused.as_str(), "preset", [None, None]),
    ] {
        let project = Project::with(CONFIG);
        project.task("A", &["replay output"]);
        std::fs::write(project.shared("output"), output).unwrap();
        for seconds in pauses {
            let ran = project.work(&[]);
            assert_eq!(ran.code, Some(1), "{ran:?}");
            let shown = &project.ok(&["status"])["parked"][0];
            assert_eq!(shown["kind"], subject, "{shown}");
            let pause = shown["nextTryAt"]
                .as_str()
                .map(|_| time(&shown["nextTryAt"]).since(time(&shown["parkedAt"])).as_secs());
            assert_eq!(pause, seconds, "{shown}");
        }
        expect_no_loss(&project, &["A".to_owned()], "pending");
    }
}

#[test]
fn a_limit_during_a_review_leaves_the_task_in_review_and_counts_no_rejection() {
    let project = Project::with(
        "runners: {preset: pretend, killGrace: 300ms}\nreview: {enabled: true, preset: pretend-claude-judge}\n\
         locking: {pollInterval: 1s}",
    );
    project.task("A", &["mark worked", "review: replay limit", "review: tenure task approve A"]);
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    let ran = project.work(&[]);
    assert!(ran.err.contains("account claude is parked: claude reports a usage limit"), "{}", ran.err);
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
    assert!(ran.err.contains(&format!("host is parked: {reason}")), "{}", ran.err);
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
    assert!(ran.err.contains("account claude is parked: claude reports a usage limit"), "{}", ran.err);
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "pending"));
    assert!(project.marks("b").is_empty());
}

#[test]
fn an_agent_that_only_mentions_a_limit_is_charged_and_fails_its_task_in_the_end() {
    let project = Project::with(CONFIG);
    let talk = r#"print {"type":"assistant","message":{"content":[{"type":"text","text":"You've hit your usage limit (429)"}]}}"#;
    project.task("A", &[talk, "mark tried", "exit 1"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.marks("tried").len()), ("failed", 3));
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]));
}

/// The first attempt began 35 seconds before the limit: in real time with `TENURE_TEST_FULL`, otherwise only according
/// to the store.
fn a_limit_after_a_while_of_work_against_a_backlog_of(count: usize) {
    let project = Project::with(CONFIG);
    let answer = r#"print {"type":"assistant","message":{"content":[{"type":"text","text":"working"}]}}"#;
    let keys: Vec<String> = (1..=count).map(|n| format!("T{n}")).collect();
    for key in &keys {
        let done = format!("tenure task done {key}");
        project.task(key, &[answer, "mark tried", "wait go", answer, "replay limit", &done]);
    }
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    let runner = project.runner(&[]);
    project.wait_for("tried");
    if is_full() {
        std::thread::sleep(Duration::from_secs(35));
    } else {
        project.sql("UPDATE attempts SET started_at = started_at - 35000");
    }
    project.give("go");
    assert_eq!(runner.end().code, Some(1));
    assert_eq!(project.marks("tried").len(), 1, "the rest of the backlog waits");
    expect_no_loss(&project, &keys, "pending");
    std::fs::remove_file(project.shared("limit")).unwrap();
    let again = project.work(&[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let resumed = again.err.matches("Resuming the agent's session").count();
    assert_eq!(resumed, 1, "the task that met the limit goes on in its conversation: {}", again.err);
    expect_no_loss(&project, &keys, "completed");
}

#[test]
fn a_limit_after_a_while_of_work_loses_no_task_of_a_backlog_of_two() {
    a_limit_after_a_while_of_work_against_a_backlog_of(2);
}

#[test]
fn a_limit_after_a_while_of_work_loses_no_task_of_a_backlog_of_ten() {
    a_limit_after_a_while_of_work_against_a_backlog_of(10);
}

#[test]
fn while_one_runner_tries_a_parked_account_no_other_takes_a_task() {
    let project = Project::with(
        "runners: {preset: pretend-claude, killGrace: 300ms, maxConcurrent: 2}\nlocking: {pollInterval: 1s}",
    );
    for key in ["A", "B"] {
        let done = format!("tenure task done {key}");
        project.task(key, &["replay limit", "mark begun", "wait go", &done]);
    }
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    std::fs::remove_file(project.shared("limit")).unwrap();
    let first = project.runner(&[]);
    project.wait_for("begun");
    let second = project.work(&[]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("account claude is parked"), "{}", second.err);
    assert_eq!(project.marks("begun").len(), 1);
    project.give("go");
    assert_eq!(first.end().code, Some(0));
    expect_no_loss(&project, &["A".to_owned(), "B".to_owned()], "completed");
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]));
}

#[test]
fn a_preset_with_another_account_is_not_parked() {
    let project = Project::with(CONFIG);
    project.task("A", &["replay limit", "tenure task done A"]);
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    std::fs::remove_file(project.shared("limit")).unwrap();
    let file = project.root().join(".tenure/config.yaml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("pretend-claude: {", "pretend-claude: {account: second, ")).unwrap();
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let parked = project.ok(&["status"])["parked"].clone();
    assert_eq!(
        (parked[0]["name"].as_str(), parked.as_array().unwrap().len()),
        (Some("claude"), 1),
        "{parked}"
    );
}

#[test]
fn a_wrong_option_parks_the_preset_until_its_configuration_changes() {
    let project = Project::with(CONFIG);
    project.task("A", &["print error: unknown option '--colour'", "mark tried", "exit 1"]);
    let ran = project.work(&[]);
    assert!(ran.err.contains("preset pretend-claude is parked: claude does not accept"), "{}", ran.err);
    expect_no_loss(&project, &["A".to_owned()], "pending");
    let why = project.run(&["why"]).out;
    assert!(why.contains("it is tried again when its configuration changes"), "{why}");
    assert!(why.contains("unknown option '--colour'"), "{why}");
}

#[test]
fn parking_survives_the_death_of_the_runner() {
    let project = Project::with(CONFIG);
    project.task("A", &["replay limit", "mark begun", "hang"]);
    std::fs::write(project.shared("limit"), limit().0).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    let before = project.ok(&["status"])["parked"][0].clone();
    std::fs::remove_file(project.shared("limit")).unwrap();
    // The runner that tries it is killed: it stays parked, and can be tried again.
    let runner = project.runner(&[]);
    project.wait_for("begun");
    runner.signal(rustix::process::Signal::KILL);
    drop(runner);
    let after = project.ok(&["status"])["parked"][0].clone();
    assert_eq!((&after["reason"], &after["timesParked"]), (&before["reason"], &before["timesParked"]));
    let again = project.runner(&[]);
    until("it is tried again", || project.marks("begun").len() == 2);
    again.signal(rustix::process::Signal::TERM);
    assert_eq!(again.end().code, Some(0));
}

fn wake_up(project: &Project) -> String {
    let answer = project.ok(&["runners", "wakeup"]);
    answer["results"][0]["decision"].as_str().unwrap().to_owned()
}

/// The network is away for three minutes while a timer calls wake-up. `TENURE_TEST_FULL` lets that time pass; otherwise each
/// pause is over as soon as it begins, and counts in full.
fn an_outage_of_three_minutes_against_a_backlog_of(count: usize) {
    let project = Project::with(CONFIG);
    project.trust();
    let keys: Vec<String> = (1..=count).map(|n| format!("T{n}")).collect();
    for key in &keys {
        let done = format!("tenure task done {key}");
        project.task(key, &["mark tried", "replay outage", &done]);
    }
    std::fs::write(project.shared("outage"), NO_CONNECTION).unwrap();
    let parked = || project.ok(&["status"])["parked"][0].clone();
    let mut passed = Duration::ZERO;
    let mut pauses = Vec::new();
    while passed < Duration::from_mins(3) {
        assert_eq!(wake_up(&project), "started", "{pauses:?}");
        until("the host is parked", || parked()["timesParked"] == pauses.len() + 1);
        until("its runner has ended", || project.runners().is_empty());
        let row = parked();
        let pause = time(&row["nextTryAt"]).since(time(&row["parkedAt"]));
        assert_eq!((row["kind"].as_str(), wake_up(&project).as_str()), (Some("host"), "parked"), "{row}");
        expect_no_loss(&project, &keys, "pending");
        pauses.push(pause);
        assert_eq!(project.marks("tried").len(), pauses.len(), "one task is tried after each pause");
        if is_full() {
            while SystemClock.now() < time(&row["nextTryAt"]) {
                std::thread::sleep(Duration::from_millis(500));
            }
        } else {
            project.sql("UPDATE parkings SET next_try_at = 1000 WHERE next_try_at IS NOT NULL");
        }
        passed += pause;
    }
    assert_eq!(pauses, [30, 60, 120].map(Duration::from_secs));
    std::fs::remove_file(project.shared("outage")).unwrap();
    assert_eq!(wake_up(&project), "started");
    for key in &keys {
        project.wait_until(key, "completed");
    }
    expect_no_loss(&project, &keys, "completed");
    assert_eq!(project.ok(&["status"])["parked"], serde_json::json!([]));
}

#[test]
fn an_outage_of_three_minutes_loses_no_task_of_a_backlog_of_two() {
    an_outage_of_three_minutes_against_a_backlog_of(2);
}

#[test]
fn an_outage_of_three_minutes_loses_no_task_of_a_backlog_of_ten() {
    an_outage_of_three_minutes_against_a_backlog_of(10);
}

/// The agent is started by `runners start` again and again, as by a person or, after each pause, by wake-up.
#[test]
fn an_outage_and_an_expired_login_lose_no_task() {
    let overloaded = NOT_LOGGED_IN.replace("authentication_failed", "overloaded");
    for (output, count) in [(NO_CONNECTION, 2), (NO_CONNECTION, 10), (NOT_LOGGED_IN, 10), (&overloaded, 2)] {
        let project = Project::with(CONFIG);
        let keys: Vec<String> = (1..=count).map(|n| format!("T{n}")).collect();
        for key in &keys {
            let done = format!("tenure task done {key}");
            project.task(key, &["mark tried", "replay output", &done]);
        }
        std::fs::write(project.shared("output"), output).unwrap();
        for round in 1..=3 {
            assert_eq!(project.work(&[]).code, Some(1));
            assert_eq!(project.marks("tried").len(), round, "one task is tried each time");
            expect_no_loss(&project, &keys, "pending");
        }
        std::fs::remove_file(project.shared("output")).unwrap();
        assert_eq!(project.work(&[]).code, Some(0));
        expect_no_loss(&project, &keys, "completed");
    }
}

#[test]
fn parking_survives_a_reboot() {
    let project = Project::with(CONFIG);
    project.task("A", &["replay limit", "tenure task done A"]);
    let (output, reset) = limit();
    std::fs::write(project.shared("limit"), output).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    let before = project.ok(&["status"])["parked"][0].clone();
    project.rewrite_processes(|process| process["boot_id"] = "boot before".into());
    if project.server().is_none() {
        // The store clock is based on the boot clock.
        project.sql("UPDATE identity SET boot = 'boot before'");
    }
    let after = project.ok(&["status"])["parked"][0].clone();
    assert_eq!((&after["reason"], &after["timesParked"]), (&before["reason"], &before["timesParked"]));
    let shift = (time(&after["resetsAt"]).as_millis() - reset.as_millis()).abs();
    assert!(shift < 60_000, "{after}");
    std::fs::remove_file(project.shared("limit")).unwrap();
    assert_eq!(project.work(&[]).code, Some(0));
    expect_no_loss(&project, &["A".to_owned()], "completed");
}

#[test]
fn a_clock_that_is_set_neither_ends_nor_prolongs_the_pause_until_a_reset() {
    let project = Project::with(CONFIG);
    project.task("A", &["replay limit"]);
    let (output, reset) = limit();
    std::fs::write(project.shared("limit"), output).unwrap();
    assert_eq!(project.work(&[]).code, Some(1));
    for (skew, hours) in [("+2h", 2), ("-2h", -2)] {
        let shown = tenure_testkit::cli::Running::start(project.skewed(skew, &["--json", "status"])).end();
        let parked = shown.data()["parked"][0].clone();
        // Times are shown on the clock of the command, except where the server has the only clock.
        let expected = if project.server().is_some() { 0 } else { hours * 3_600_000 };
        let shift = time(&parked["resetsAt"]).as_millis() - reset.as_millis();
        assert!((shift - expected).abs() < 60_000, "{skew}: {shift} {parked}");
        let text = tenure_testkit::cli::Running::start(project.skewed(skew, &["status"])).end().out;
        let left = text.split("wake-up tries it again in ").nth(1).unwrap_or_default();
        assert!(
            left.starts_with("1h") || left.starts_with("59m") || left.starts_with("60m"),
            "{skew}: {text}"
        );
    }
}
