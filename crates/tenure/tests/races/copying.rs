//! `store copy`: copies everything or nothing from one store to the other, in both directions.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{Running, until};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::{Cut, Proxy};

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
    let held = project.ok(&["tasks", "claim", "F5", "--agent", "bob"]);
    let refused = project.run(&["--json", "store", "copy", "--to", &url]);
    assert_eq!(refused.code, Some(6), "a task is held: {refused:?}");
    assert_eq!(refused.json()["error"]["details"]["lockedBy"], "bob");
    let said = project.run(&["store", "copy", "--to", &url]).err;
    assert!(said.contains("A store can be copied only while nothing is held."), "{said}");
    project.ok(&["tasks", "release", "F5", "--agent", "bob"]);

    let before = seen(&project);
    let dry = project.ok(&["store", "copy", "--to", &url, "--dry-run"]);
    let copied = project.ok(&["store", "copy", "--to", &url]);
    assert_eq!(dry["rows"], copied["rows"]);
    assert_eq!(copied["rows"]["tasks"], 1500);
    assert_moved(&project, &url);
    project.store_variable = Some(url.clone());
    let now = seen(&project);
    assert_eq!(now, before);
    // The copy continues the numbering: it repeats no fence, no key and no event number.
    let next = project.ok(&["tasks", "claim", "F6", "--agent", "bob"]);
    assert!(next["lease"]["fence"].as_i64() > held["lease"]["fence"].as_i64());
    assert_eq!(project.ok(&["tasks", "add", "new"])["task"]["key"], "T2");
    project.ok(&["tasks", "done", "F6", "--agent", "bob"]);
    let ready = project.ok(&["tasks", "next"]);
    assert_eq!(ready["task"]["key"], "F2");

    let on_server = seen(&project);
    project.ok(&["store", "copy", "--to", "sqlite:"]);
    assert_moved(&project, "sqlite:");
    project.store_variable = None;
    assert_eq!(seen(&project), on_server);
    let last = project.ok(&["tasks", "claim", "F7", "--agent", "bob"]);
    assert!(last["lease"]["fence"].as_i64() > next["lease"]["fence"].as_i64());
    assert_eq!(project.ok(&["tasks", "add", "newer"])["task"]["key"], "T3");
}

/// Asserts that every command on the store that was copied away names the new store, and that the hint leads
/// there.
#[track_caller]
fn assert_moved(project: &Project, to: &str) {
    for words in [&["tasks", "list"][..], &["tasks", "claim", "F6", "--agent", "eve"], &["tasks", "next"]] {
        let refused = project.run(&[&["--json"], words].concat());
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let answer = refused.json();
        assert_eq!(answer["error"]["code"], "STORE_MOVED");
        assert!(answer["error"]["details"]["movedTo"].as_str().unwrap().starts_with(to), "{answer}");
        let hint = answer["hints"][0]["command"].as_str().unwrap();
        assert_eq!(hint.replace('\'', ""), format!("tenure config set store.url {to}"));
    }
}

/// A project with a few tasks on SQLite.
fn small() -> Project {
    let project = Project::bare_on(None);
    project.ok(&["init"]);
    project.add("F", 3);
    project
}

/// The copy is killed before and after each commit on the server: while the target is filled, before and after the source
/// is sealed, and while the target is opened.
#[test]
fn a_killed_copy_leaves_at_most_one_store_serving_and_can_be_repeated() {
    let cluster = Cluster::shared();
    let (mut kills, mut sealed_by_kill) = (0, 0);
    for how in [Cut::HoldBefore, Cut::HoldAfter] {
        for commit in 1.. {
            let mut project = small();
            let now = seen(&project);
            let database = cluster.new_database();
            let url = cluster.url_of(&database);
            let proxy = Proxy::to(cluster.port());
            proxy.cut(how, commit);
            let behind =
                cluster.tcp_url("tenure", proxy.port()).replace("/postgres", &format!("/{database}"));
            let mut copy: Running = project.spawn(&["store", "copy", "--to", &behind]);
            until("the copy is held or complete", || proxy.cuts() > 0 || !copy.is_running());
            if proxy.cuts() == 0 {
                assert_eq!(copy.end().code, Some(0));
                break;
            }
            copy.signal(Signal::KILL);
            drop(copy.end());
            kills += 1;
            let here = project.run(&["tasks", "show", "F1"]).code == Some(0);
            project.store_variable = Some(url.clone());
            let there = project.run(&["tasks", "show", "F1"]).code == Some(0);
            project.store_variable = None;
            assert!(!(here && there), "{how:?} commit {commit}: both stores serve");
            sealed_by_kill += u32::from(!here && !there);
            project.ok(&["store", "copy", "--to", &url]);
            project.store_variable = Some(url);
            assert_eq!(seen(&project), now);
        }
    }
    assert!(kills > 4 && sealed_by_kill > 0, "{kills} {sealed_by_kill}: no kill fell between the steps");
}

/// Waiters and the MCP server have the store open while it is copied away.
#[test]
fn a_waiter_on_a_store_that_is_copied_away_ends_and_names_the_new_one() {
    let url = Cluster::shared().url();
    let mut project = Project::bare_on(None);
    project.init(&[]);
    project.configure("locking: {pollInterval: 1s}");
    for (to, next) in [(url.clone(), Some(url.clone())), ("sqlite:".to_owned(), None)] {
        let waiter = project.spawn(&["--json", "tasks", "next", "--claim", "--wait", "60s", "--agent", "w"]);
        until("the waiter waits", || project.select("SELECT holder_id FROM tickets") == ["w"]);
        project.ok(&["store", "copy", "--to", &to]);
        let ended = waiter.end();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert_eq!(ended.json()["error"]["code"], "STORE_MOVED");
        project.store_variable = next;
    }
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

#[test]
fn a_project_on_a_server_is_backed_up_and_restored_on_both_kinds_of_store() {
    let url = Cluster::shared().url();
    let mut project = filled();
    project.ok(&["store", "copy", "--to", &url]);
    project.store_variable = Some(url);
    let now = seen(&project);
    let saved = project.ok(&["store", "backup", "saved"]);
    assert_eq!(saved["store"]["tasks"], 1500);
    project.ok(&["tasks", "add", "later"]);
    let restored = project.ok(&["store", "restore", "saved"]);
    assert_eq!(seen(&project), now);
    let fence = project.ok(&["tasks", "claim", "F6", "--agent", "ann"])["lease"]["fence"].clone();
    assert!(fence.as_i64() > restored["store"]["fence"].as_i64().map(|fence| fence - 1));
    project.store_variable = None;
    let sealed = project.run(&["--json", "store", "restore", "saved"]);
    assert_eq!(sealed.json()["error"]["code"], "STORE_MOVED", "{sealed:?}");
    project.ok(&["store", "restore", "saved", "--force"]);
    assert_eq!(seen(&project), now);
}
