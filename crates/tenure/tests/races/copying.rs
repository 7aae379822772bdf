//! `store copy`: copies everything or nothing from one store to the other, in both directions.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::postgres::Cluster;

use tenure_testkit::cli::{Running, until};

use crate::harness::Project;

/// Everything of a project that a user can see.
fn seen(project: &Project) -> Vec<Value> {
    let mut all: Vec<Value> = [
        &["tasks", "list", "--status", "all", "--limit", "1000"][..],
        &["sections", "list"],
        &["agents", "list"],
        &["msg", "list", "--all"],
        &["locks", "show", "F2", "--history"],
    ]
    .iter()
    .map(|words| project.ok(words))
    .collect();
    all.extend(project.feed());
    all
}

fn filled() -> Project {
    let project = Project::bare_on(None);
    project.ok(&["init"]);
    project.ok(&["sections", "add", "Line"]);
    project.ok(&["sections", "add", "Crowd", "--parallel"]);
    project.ok(&["sections", "depend", "Crowd", "--on", "Line"]);
    project.add("F", 1500);
    project.ok(&["tasks", "update", "F3", "--section", "Line", "--label", "it's; DROP TABLE tasks"]);
    project.ok(&["tasks", "depend", "F4", "--on", "F1"]);
    for task in ["F1", "F2"] {
        project.ok(&["tasks", "claim", task, "--agent", "ann"]);
    }
    project.ok(&["tasks", "done", "F1", "--agent", "ann"]);
    project.ok(&["tasks", "release", "F2", "--agent", "ann", "-m", "tomorrow ü 🦀"]);
    project.ok(&["msg", "send", "--task", "F2", "-m", "line one\nline two"]);
    project
}

#[test]
fn a_project_survives_the_copy_to_a_server_and_back() {
    // A project in which no number has been used yet.
    let url = Cluster::shared().url_of(&Cluster::shared().new_database());
    let mut project = filled();
    project.ok(&["tasks", "add", "first"]);
    project.ok(&["tasks", "delete", "T1"]);
    let before = seen(&project);
    let held = project.ok(&["tasks", "claim", "F5", "--agent", "bob"]);
    let refused = project.run(&["--json", "store", "copy", "--to", &url]);
    assert_eq!(refused.code, Some(6), "a task is held: {refused:?}");
    assert_eq!(refused.json()["error"]["details"]["lockedBy"], "bob");
    project.ok(&["tasks", "release", "F5", "--agent", "bob"]);

    let dry = project.ok(&["store", "copy", "--to", &url, "--dry-run"]);
    let copied = project.ok(&["store", "copy", "--to", &url]);
    assert_eq!(dry["rows"], copied["rows"]);
    assert_eq!(copied["rows"]["tasks"], 1500);
    let now = seen(&project);
    assert!(now.len() > before.len());
    project.store_variable = Some(url.clone());
    assert_eq!(seen(&project), now);

    let again = project.run(&["--json", "store", "copy", "--to", "sqlite:"]);
    assert_eq!(again.code, Some(1), "an existing project is not overwritten: {again:?}");
    // The copy continues the numbering: it repeats no fence, no key and no event number.
    let next = project.ok(&["tasks", "claim", "F6", "--agent", "bob"]);
    assert!(next["lease"]["fence"].as_i64() > held["lease"]["fence"].as_i64());
    assert_eq!(project.ok(&["tasks", "add", "new"])["task"]["key"], "T2");
    project.ok(&["tasks", "done", "F6", "--agent", "bob"]);
    let ready = project.ok(&["tasks", "next"]);
    assert_eq!(ready["task"]["key"], "F2");

    let on_server = seen(&project);
    std::fs::remove_file(project.database()).unwrap();
    project.ok(&["store", "copy", "--to", "sqlite:"]);
    project.store_variable = None;
    assert_eq!(seen(&project), on_server);
    let last = project.ok(&["tasks", "claim", "F7", "--agent", "bob"]);
    assert!(last["lease"]["fence"].as_i64() > next["lease"]["fence"].as_i64());
    assert_eq!(project.ok(&["tasks", "add", "newer"])["task"]["key"], "T3");
}

#[test]
fn a_killed_copy_leaves_nothing_and_can_be_repeated() {
    let url = Cluster::shared().url();
    let mut project = filled();
    let now = seen(&project);
    for wait in [5_u64, 30, 60, 90, 120] {
        let copy: Running = project.spawn(&["store", "copy", "--to", &url]);
        if !copy.ends_within(std::time::Duration::from_millis(wait)) {
            copy.signal(Signal::KILL);
        }
        if copy.end().code == Some(0) {
            break;
        }
    }
    let last = project.run(&["--json", "store", "copy", "--to", &url]);
    // Either no copy was made, or one complete copy.
    assert!(matches!(last.code, Some(0 | 1)), "{last:?}");
    project.store_variable = Some(url);
    assert_eq!(seen(&project), now);
}

/// The socket of a dead runner is longer than the name of a channel may be, and rings in one store mean nothing in another.
#[test]
fn a_copy_with_the_slots_of_dead_runners_can_be_changed() {
    for runners in [1, 2] {
        let url = Cluster::shared().url();
        let mut project = Project::bare_on(None);
        project.init(&[]);
        project.configure(&format!(
            "runners: {{maxConcurrent: {runners}, idleTimeout: 10m, preset: quiet}}\npresets: {{quiet: {{command: [\"true\"]}}}}"
        ));
        let long = project.path(&format!("run-{}", "x".repeat(8)));
        let start = || {
            let mut start = project.command(&["runners", "start", "--foreground"]);
            start.env("XDG_RUNTIME_DIR", &long);
            let mut runner = Running::start(start);
            until("the runner has started", || {
                project.log(runner.pid()).contains(" started on ") || !runner.is_running()
            });
            runner
        };
        let started: Vec<Running> = (0..runners).map(|_| start()).collect();
        for runner in started {
            runner.signal(Signal::KILL);
            drop(runner.end());
        }
        let bells =
            project.select("SELECT doorbell FROM leases WHERE ended_at IS NULL AND resource_kind = 'runner'");
        assert_eq!(bells.len(), runners);
        assert!(bells.iter().all(|bell| bell.len() > 64), "{bells:?}");
        project.ok(&["store", "copy", "--to", &url]);
        project.store_variable = Some(url);
        project.ok(&["tasks", "add", "One"]);
        project.ok(&["tasks", "claim", "T1", "--agent", "ann"]);
        project.ok(&["locks", "cleanup"]);
        project.ok(&["tasks", "done", "T1", "--agent", "ann"]);
    }
}
