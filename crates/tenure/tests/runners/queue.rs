//! A runner and other waiters for ready tasks: it overtakes none, holds only what it works on, and gets its turn.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{Running, until};

use crate::project::Project;

fn waiter(project: &Project, name: &str, more: &[&str]) -> Running {
    let args = ["--json", "tasks", "next", "--claim", "--agent", name];
    project.spawn(&[&args[..], more].concat())
}

#[test]
fn an_idle_runner_takes_only_the_tasks_that_earlier_waiters_leave() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    let runner = project.runner(&["--idle-timeout", "1h"]);
    project.wait_for_log(runner.pid(), "Going idle");
    // They are stopped, so that the runner has time to take tasks that are meant for them.
    let mut waiters = Vec::new();
    for n in 0..3 {
        let waiter = waiter(&project, &format!("w{n}"), &["--wait", "30m"]);
        until("it waits", || tickets(&project) == n + 1);
        project.stop_between_writes(waiter.pid());
        waiters.push(waiter);
    }
    let keys: Vec<String> = (0..5).map(|n| format!("K{n}")).collect();
    for key in &keys {
        project.task(key, &[]);
    }
    let (theirs, others) = keys.split_at(3);
    for key in others {
        project.wait_until(key, "completed");
    }
    for key in theirs {
        assert_eq!(project.status(key), "pending", "{key}");
    }
    assert_eq!(project.locks(), Vec::<Value>::new(), "the runner holds what it does not work on");
    for ((n, waiter), key) in waiters.into_iter().enumerate().zip(theirs) {
        waiter.signal(Signal::CONT);
        assert_eq!(waiter.end().data()["task"]["key"], *key);
        project.ok(&["tasks", "done", key, "--agent", &format!("w{n}")]);
    }
    project.task("last", &[]);
    project.wait_until("last", "completed");
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_waiter_for_an_empty_section_delays_no_other_work() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    project.ok(&["sections", "add", "Empty"]);
    project.ok(&["sections", "add", "Busy", "--parallel"]);
    let mut first = waiter(&project, "first", &["--section", "Empty", "--wait", "30m"]);
    until("it waits", || tickets(&project) == 1);
    for n in 0..4 {
        project.task_in(&format!("B{n}"), &[], &["--section", "Busy"]);
    }
    let quick = waiter(&project, "quick", &[]).end();
    assert_eq!(quick.code, Some(0), "{quick:?}");
    assert_eq!(quick.data()["task"]["key"], "B0");
    let patient = waiter(&project, "patient", &["--wait", "30m"]).end();
    assert_eq!(patient.data()["task"]["key"], "B1");
    project.ok(&["tasks", "done", "B0", "--agent", "quick"]);
    project.ok(&["tasks", "done", "B1", "--agent", "patient"]);
    let worked = project.work(&[]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    for key in ["B2", "B3"] {
        assert_eq!(project.status(key), "completed");
    }
    assert!(first.is_running());
    project.task_in("E", &[], &["--section", "Empty"]);
    assert_eq!(first.end().data()["task"]["key"], "E");
}

#[test]
fn a_task_that_an_earlier_waiter_leaves_goes_to_the_runner_at_once() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    let first = waiter(&project, "first", &["--wait", "30m"]);
    until("it waits", || tickets(&project) == 1);
    project.stop_between_writes(first.pid());
    project.task("A", &["mark a"]);
    let runner = project.runner(&[]);
    project.wait_for_log(runner.pid(), "Ready work is reserved for earlier waiters (1)");
    until("the runner is queued", || tickets(&project) == 2);
    assert_eq!(project.status("A"), "pending");
    assert_eq!(project.locks(), Vec::<Value>::new());
    let newcomer = waiter(&project, "newcomer", &[]).end();
    assert_eq!(newcomer.code, Some(10), "{newcomer:?}");
    let message = "nothing is left for you: 1 ready task is reserved for a waiter";
    for answer in [newcomer, project.run(&["--json", "tasks", "next"])] {
        let error = &answer.json()["error"];
        assert_eq!((answer.code, error["message"].as_str()), (Some(10), Some(message)));
        assert_eq!(error["details"]["reserved"], 1);
        is_first(&error["details"]["first"], "first");
    }
    let named = project.run(&["--json", "tasks", "claim", "A", "--agent", "newcomer"]);
    assert_eq!(named.code, Some(6), "{named:?}");
    is_first(&named.json()["error"]["details"]["first"], "first");
    for args in [&["--json", "why", "A"][..], &["--json", "why"]] {
        let why = project.run(args).data()["reasons"].clone();
        let reason = why.as_array().unwrap().iter().find(|reason| reason["kind"] == "reserved");
        is_first(&reason.unwrap_or_else(|| panic!("{why}"))["first"], "first");
    }
    let text = project.run(&["tasks", "next"]).err;
    assert!(text.contains("First in queue: agent first, for any task, since 20"), "{text}");
    first.signal(Signal::INT);
    first.signal(Signal::CONT);
    assert_eq!(first.end().code, Some(130));
    let answer = runner.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(project.status("A"), "completed");
    assert_eq!(tickets(&project), 0);
}

#[test]
fn a_waiter_that_is_silent_for_too_long_does_not_delay_the_runner() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 500ms}");
    let first = waiter(&project, "first", &["--wait", "30m"]);
    until("it waits", || tickets(&project) == 1);
    project.stop_between_writes(first.pid());
    project.task("A", &[]);
    let worked = project.work(&[]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    assert_eq!(project.status("A"), "completed");
    first.signal(Signal::KILL);
}

fn is_first(waiter: &Value, name: &str) {
    assert_eq!((waiter["holder"]["id"].as_str(), waiter["wish"].as_str()), (Some(name), Some("ready:")));
    assert!(waiter["since"].is_string(), "{waiter}");
}

#[test]
fn a_runner_that_waits_is_served_in_its_order_of_arrival() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    project.ok(&["sections", "add", "S"]);
    project.task_in("H", &[], &["--section", "S"]);
    project.task_in("A", &["mark a"], &["--section", "S"]);
    project.ok(&["tasks", "claim", "H", "--agent", "holder"]);
    let runner = project.runner(&["--once"]);
    until("the runner waits", || tickets(&project) == 1);
    let second = project.spawn(&["--json", "tasks", "claim", "A", "--wait", "30m", "--agent", "second"]);
    until("it waits", || tickets(&project) == 2);
    project.ok(&["tasks", "done", "H", "--agent", "holder"]);
    let answer = runner.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(project.status("A"), "completed");
    let answer = second.end();
    assert_eq!(answer.code, Some(2), "it learns at once that A cannot be started: {answer:?}");
    assert_eq!(tickets(&project), 0);
}

#[test]
fn a_serial_section_is_opened_to_waiters_while_a_runner_works_in_it() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    project.ok(&["sections", "add", "S"]);
    project.task_in("A", &["mark A", "wait go"], &["--section", "S"]);
    for task in ["B", "C"] {
        project.task_in(task, &[], &["--section", "S"]);
    }
    let runner = project.runner(&["--once"]);
    project.wait_for("A");
    let bob = project.spawn(&["--json", "tasks", "next", "--claim", "--wait", "30m", "--agent", "bob"]);
    until("it waits", || tickets(&project) == 1);
    project.ok(&["sections", "update", "S", "--parallel"]);
    // Without a poll: the change wakes the waiter.
    let granted = bob.end();
    assert_eq!(granted.data()["task"]["key"], "B", "{granted:?}");
    project.ok(&["tasks", "claim", "C", "--agent", "cid"]);
    project.give("go");
    let ended = runner.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!((project.status("A"), project.moves("A", "in_progress")), ("completed".to_owned(), 1));
    project.ok(&["tasks", "done", "B", "--agent", "bob"]);
}

#[test]
fn a_runner_does_not_overtake_an_earlier_waiter_for_a_task() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    project.ok(&["sections", "add", "S"]);
    project.task_in("H", &[], &["--section", "S"]);
    project.task_in("A", &["mark a"], &["--section", "S"]);
    project.ok(&["tasks", "claim", "H", "--agent", "holder"]);
    let first = project.spawn(&["--json", "tasks", "claim", "A", "--wait", "30m", "--agent", "first"]);
    until("it waits", || tickets(&project) == 1);
    project.stop_between_writes(first.pid());
    let runner = project.runner(&[]);
    until("the runner waits", || tickets(&project) == 2);
    project.ok(&["tasks", "done", "H", "--agent", "holder"]);
    project.task("B", &["mark b"]);
    project.wait_until("B", "completed");
    assert_eq!(project.status("A"), "pending", "it is reserved for the first waiter");
    first.signal(Signal::CONT);
    assert_eq!(first.end().code, Some(0));
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_runner_that_an_exclusive_lock_pauses_leaves_the_queue() {
    let project =
        Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 100ms, waitTimeout: 1h}");
    project.ok(&["sections", "add", "S"]);
    project.task_in("H", &[], &["--section", "S"]);
    project.task_in("A", &["mark a"], &["--section", "S"]);
    project.ok(&["tasks", "claim", "H", "--agent", "holder"]);
    let runner = project.runner(&[]);
    until("the runner waits", || tickets(&project) == 1);
    let pid = std::process::id().to_string();
    project.ok(&["exclusive", "acquire", "--holder", "backup", "--pid", &pid]);
    until("it has left the queue", || tickets(&project) == 0);
    project.ok(&["tasks", "done", "H", "--agent", "holder"]);
    project.ok(&["tasks", "claim", "A", "--agent", "other"]);
    project.ok(&["tasks", "release", "A", "--agent", "other"]);
    project.ok(&["exclusive", "release", "--force"]);
    project.wait_until("A", "completed");
    assert_eq!(runner.end().code, Some(0));
}

fn tickets(project: &Project) -> u64 {
    project.store().read(|view| view.count_tickets()).unwrap()
}
