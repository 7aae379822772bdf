//! A runner beside waiters for ready work: it overtakes nobody, holds nothing that it does not work on, and gets its turn.

use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use tenure_core::SystemClock;
use tenure_core::store::Store;
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::world::{Project, Running, until};

fn waiter(project: &Project, name: &str, more: &[&str]) -> Running {
    let args = ["--json", "tasks", "next", "--claim", "--agent", name];
    project.spawn(&[&args[..], more].concat())
}

/// Is the task done, or held by an agent that has waited for it?
fn is_in_good_hands(project: &Project, key: &str) -> bool {
    let task = project.show(key);
    task["status"] == "completed" || task["lease"]["holder"]["kind"] == "agent"
}

#[test]
fn an_idle_runner_beside_waiters_leaves_no_task_behind() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 1s}");
    let runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    let keys: Vec<String> = (0..8).map(|n| format!("K{n}")).collect();
    let mut waiters = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        waiters.push(waiter(&project, &format!("w{n}"), &["--wait", "5s"]));
        project.task(key, &[]);
    }
    for (n, waiter) in waiters.into_iter().enumerate() {
        let answer = waiter.end();
        match answer.code {
            Some(0) => {
                let key = answer.data()["task"]["key"].as_str().unwrap().to_owned();
                assert!(is_in_good_hands(&project, &key), "{key} was granted to w{n}");
                project.ok(&["tasks", "done", &key, "--agent", &format!("w{n}")]);
            }
            // The runner was faster.
            code => assert_eq!(code, Some(9), "{answer:?}"),
        }
    }
    for key in &keys {
        project.wait_until(key, "completed");
    }
    assert_eq!(project.locks(), Vec::<Value>::new(), "the runner holds what it does not work on");
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_waiter_for_an_empty_section_keeps_nobody_from_work() {
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
fn what_an_earlier_waiter_leaves_goes_to_the_runner_at_once() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 10m, waitTimeout: 1h}");
    let first = waiter(&project, "first", &["--wait", "30m"]);
    until("it waits", || tickets(&project) == 1);
    first.signal(Signal::STOP);
    project.task("A", &["mark a"]);
    let runner = project.runner(&[]);
    project.wait_for_log(runner.pid(), "What is ready goes to earlier waiters (1)");
    until("it queues, too", || tickets(&project) == 2);
    assert_eq!(project.status("A"), "pending");
    assert_eq!(project.locks(), Vec::<Value>::new());
    let newcomer = waiter(&project, "newcomer", &[]).end();
    assert_eq!(newcomer.code, Some(10), "{newcomer:?}");
    first.signal(Signal::INT);
    first.signal(Signal::CONT);
    assert_eq!(first.end().code, Some(130));
    let answer = runner.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(project.status("A"), "completed");
    assert_eq!(tickets(&project), 0);
}

#[test]
fn a_waiter_that_is_silent_for_too_long_does_not_keep_the_runner_from_work() {
    let project = Project::with("runners: {preset: pretend}\nlocking: {pollInterval: 500ms}");
    let first = waiter(&project, "first", &["--wait", "30m"]);
    until("it waits", || tickets(&project) == 1);
    first.signal(Signal::STOP);
    project.task("A", &[]);
    let worked = project.work(&[]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    assert_eq!(project.status("A"), "completed");
    first.signal(Signal::KILL);
}

fn tickets(project: &Project) -> u64 {
    let store = SqliteStore::open(&project.database(), OpenOptions::new(Arc::new(SystemClock))).unwrap();
    let store: &dyn Store = &store;
    store.read(|view| view.count_tickets()).unwrap()
}
