//! An agent that cannot work at all does not fail the whole backlog.

use crate::project::Project;

#[test]
fn an_expired_login_parks_the_preset_and_leaves_the_tasks_pending() {
    let project = Project::new();
    for n in 1..=6 {
        project.task(&format!("T{n}"), &["print Please run /login first", "mark tried", "exit 1"]);
    }
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("preset pretend is parked: exited with 1: Please run /login first"),
        "{}",
        ran.err
    );
    assert_eq!(project.marks("tried").len(), 3, "three attempts, and no more");
    for n in 1..=6 {
        assert_eq!(project.status(&format!("T{n}")), "pending");
    }
    for n in 1..=6 {
        let task = project.show(&format!("T{n}"));
        assert_eq!(
            (task["attempts"].as_u64(), project.moves(&format!("T{n}"), "failed")),
            (Some(0), 0),
            "{task}"
        );
    }
    let reason = "exited with 1: Please run /login first";
    let status = project.ok(&["status"]);
    let parked = &status["parked"][0];
    assert_eq!(
        (parked["kind"].as_str(), parked["name"].as_str()),
        (Some("preset"), Some("pretend")),
        "{status}"
    );
    assert_eq!(parked["reason"], reason);
    assert!(parked["nextTryAt"].is_string());
    for args in [&["why"][..], &["why", "T1"][..]] {
        let why = project.ok(args);
        let reasons = why["reasons"].as_array().unwrap();
        let parked = reasons.iter().find(|r| r["kind"] == "parked").unwrap_or_else(|| panic!("{why}"));
        assert!(parked["reason"].as_str().unwrap().contains("Please run /login first"), "{why}");
        assert_eq!(why["moving"], false);
    }
    let text = project.run(&["why"]).out;
    assert!(text.contains("tenure runners start"), "{text}");
    let shown = project.run(&["status"]).out;
    assert!(shown.contains("Preset pretend is parked"), "{shown}");

    // A runner that is started by hand tries one task, and parks the preset again.
    let again = project.work(&[]);
    assert_eq!(again.code, Some(1));
    assert_eq!(project.marks("tried").len(), 4);
    let parked = project.ok(&["status"])["parked"][0].clone();
    assert_eq!(parked["timesParked"], 2, "{parked}");
    let kinds: Vec<_> = project
        .feed()
        .iter()
        .map(|e| e["kind"].as_str().unwrap().to_owned())
        .filter(|k| k.starts_with("preset"))
        .collect();
    assert_eq!(kinds, ["preset.parked", "preset.parked"]);
}

#[test]
fn an_agent_that_cannot_be_started_is_refused_before_any_task_is_claimed() {
    let project = Project::new();
    project.task("A", &[]);
    let ran = project.run(&["--json", "runners", "start", "--preset", "nobody"]);
    assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (Some(3), Some("CONFIG_ERROR")), "{ran:?}");
    assert_eq!(project.status("A"), "pending");
}

#[test]
fn a_prompt_that_cannot_be_rendered_ends_the_runner_and_leaves_no_task_in_progress() {
    let project = Project::with("runners: {preset: pretend, promptTemplate: 'Do {{task.wish}}'}");
    project.task("A", &[]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("{{task.wish}}"), "{}", ran.err);
    assert_eq!(project.status("A"), "pending");
    assert_eq!(project.ok(&["locks", "list"])["total"], 0);
}

#[test]
fn why_reports_that_no_runner_is_running() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let why = project.ok(&["why"]);
    assert!(why["reasons"].as_array().unwrap().iter().any(|r| r["kind"] == "no_runner"), "{why}");
    let runner = project.runner(&[]);
    project.wait_for("begun");
    project.task("B", &[]);
    let why = project.ok(&["why"]);
    assert!(!why["reasons"].as_array().unwrap().iter().any(|r| r["kind"] == "no_runner"), "{why}");
    let status = project.ok(&["status"]);
    let shown = &status["runners"][0];
    assert_eq!(
        (shown["status"].as_str(), shown["pid"].as_u64()),
        (Some("running"), Some(u64::from(runner.pid())))
    );
    assert_eq!(shown["currentTask"], project.show("A")["id"]);
    let text = project.run(&["status"]).out;
    assert!(text.contains("running on A (pid "), "{text}");
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.ok(&["status"])["runners"], serde_json::json!([]));
}
