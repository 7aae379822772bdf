//! Processes that follow a project: they are woken by changes, and do nothing until there is one.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{Running, until_within};

use crate::harness::Project;

/// Far longer than a notification takes on a busy machine, and far shorter than the minute after which a follower reads
/// without one.
const WOKEN: Duration = Duration::from_secs(20);

fn follow(project: &Project) -> Running {
    let follower = project.spawn(&["events", "--follow", "--json", "--since", "0", "--limit", "1000"]);
    until_within(WOKEN, "the follower has begun", || !follower.output_so_far().is_empty());
    follower
}

fn followed(follower: &Running) -> Vec<Value> {
    follower.output_so_far().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn numbers(events: &[Value]) -> Vec<i64> {
    events.iter().map(|event| event["seq"].as_i64().unwrap()).collect()
}

#[test]
fn a_change_reaches_a_follower_without_a_poll() {
    let project = Project::new();
    project.add("K", 1);
    let follower = follow(&project);
    let mut delays = Vec::new();
    for n in 0..5 {
        let title = format!("Change {n}");
        project.ok(&["tasks", "add", &title]);
        let (begun, before) = (Instant::now(), numbers(&project.feed()));
        until_within(WOKEN, "the change has arrived", || numbers(&followed(&follower)) == before);
        delays.push(begun.elapsed());
    }
    eprintln!("a follower had the events at most {:?} after the command", delays.iter().max().unwrap());
}

#[test]
fn a_follower_misses_nothing_while_many_processes_write() {
    let project = Project::new();
    project.add("K", 1);
    let follower = follow(&project);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let project = &project;
            scope.spawn(move || {
                for n in 0..8 {
                    project.ok(&["tasks", "add", &format!("{writer}-{n}")]);
                }
            });
        }
    });
    let all = numbers(&project.feed());
    until_within(WOKEN, "all events have arrived", || followed(&follower).len() >= all.len());
    assert_eq!(numbers(&followed(&follower)), all, "each once, and in order");
}

#[test]
fn status_is_printed_again_when_it_changes_and_not_before() {
    let project = Project::new();
    project.add("K", 1);
    let watching = project.spawn(&["status", "--watch", "--json"]);
    let totals = || -> Vec<i64> {
        let lines = watching.output_so_far();
        lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["total"].as_i64()).collect()
    };
    until_within(WOKEN, "the first line is printed", || totals() == [1]);
    project.ok(&["tasks", "add", "Two"]);
    until_within(WOKEN, "the second line is printed", || totals() == [1, 2]);
    // A message changes no part of the status.
    project.ok(&["msg", "send", "-m", "hello", "--to", "bob"]);
    project.ok(&["tasks", "add", "Three"]);
    until_within(WOKEN, "the third line is printed", || totals() == [1, 2, 3]);
    watching.signal(Signal::INT);
    assert_eq!(watching.end().code, Some(130));
}

/// How often the threads of a process have gone to sleep.
fn sleeps(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |path: std::path::PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    threads.map(|entry| of_thread(entry.unwrap().path())).sum()
}

#[test]
fn an_idle_follower_sleeps() {
    let project = Project::new();
    project.add("K", 1);
    for args in [&["events", "--follow", "--since", "0"][..], &["status", "--watch", "--json"]] {
        let follower = project.spawn(args);
        until_within(WOKEN, "the follower has begun", || !follower.output_so_far().is_empty());
        // The old interval of polling was 200 ms, and the pause after a read is shorter than a second.
        until_within(WOKEN, "the follower does nothing for three seconds", || {
            let before = sleeps(follower.pid());
            std::thread::sleep(Duration::from_secs(3));
            sleeps(follower.pid()) == before
        });
    }
}

/// With the poll interval of half a second, a waiter that polled would go to sleep at least six times in three seconds.
#[test]
fn an_idle_waiter_for_messages_sleeps_until_its_message_arrives() {
    let project = Project::new().configured("locking: {pollInterval: 500ms}");
    let waiter = project.spawn(&["msg", "wait", "--to", "eve", "--for", "5m", "--json"]);
    until_within(WOKEN, "the waiter does nothing for three seconds", || {
        let before = sleeps(waiter.pid());
        std::thread::sleep(Duration::from_secs(3));
        sleeps(waiter.pid()) == before
    });
    assert_eq!(project.ok(&["status"])["waiting"], 0, "it is not in the queue for work");
    project.ok(&["msg", "send", "--to", "bob", "-m", "not for her"]);
    project.ok(&["msg", "send", "--to", "eve", "-m", "for her"]);
    let begun = Instant::now();
    let end = waiter.end();
    assert!(begun.elapsed() < WOKEN, "the message was found by the read of each minute");
    assert_eq!(end.data()["messages"][0]["text"], "for her");
}
