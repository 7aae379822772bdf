//! Queues: first come, first served; a dead waiter is skipped; and waiting costs almost nothing.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use tenure_core::{Clock, SystemClock};
use tenure_testkit::cli::{HANG, Running, full_or, processes, until};

use crate::harness::Project;

/// Waiters `w0` … for one held task, each queued before the next one starts.
fn queue_up(project: &Project, task: &str, count: usize) -> Vec<Running> {
    (0..count)
        .map(|n| {
            let name = format!("w{n}");
            // Both commands that wait use the same queue.
            let waiter = if n % 2 == 0 {
                project.spawn(&["tasks", "claim", task, "--wait", "--agent", &name, "--json"])
            } else {
                project.spawn(&[
                    "tasks",
                    "update",
                    task,
                    "--status",
                    "in_progress",
                    "--agent",
                    &name,
                    "--json",
                ])
            };
            project.wait_for_queue(task, n as u64 + 1);
            waiter
        })
        .collect()
}

/// Asserts that the waiters are served in this order, each when its predecessor releases the task.
fn assert_served_in_order(project: &Project, task: &str, queue: Vec<(usize, Running)>, first: &str) {
    project.ok(&["tasks", "release", task, "--agent", first]);
    let mut queue = std::collections::VecDeque::from(queue);
    let mut fence = 0;
    while let Some((n, waiter)) = queue.pop_front() {
        let answer = waiter.end();
        assert_eq!(answer.code, Some(0), "w{n}: {answer:?}");
        let lease = &answer.json()["data"]["lease"];
        assert_eq!(lease["holder"]["id"], format!("w{n}"));
        assert!(lease["fence"].as_i64().unwrap() > fence);
        fence = lease["fence"].as_i64().unwrap();
        for (later, waiter) in &mut queue {
            assert!(waiter.is_running(), "w{later} was served with w{n}");
        }
        assert_eq!(project.queue(task), queue.len() as u64);
        project.ok(&["tasks", "release", task, "--agent", &format!("w{n}")]);
    }
}

#[test]
fn waiters_are_served_in_order_of_arrival() {
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let queue = queue_up(&project, "F1", full_or(40, 10));
    assert_served_in_order(&project, "F1", queue.into_iter().enumerate().collect(), "first");
}

#[test]
fn waiters_for_different_tasks_of_a_serial_section_are_served_in_order() {
    let project = Project::new();
    project.ok(&["sections", "add", "Serial"]);
    for n in 0..6 {
        project.ok(&["tasks", "add", &format!("task {n}"), "--id", &format!("F{n}"), "--section", "Serial"]);
    }
    project.ok(&["tasks", "claim", "F0", "--agent", "first"]);
    let mut queue = std::collections::VecDeque::new();
    for n in 1..6_u64 {
        let (task, name) = (format!("F{n}"), format!("w{n}"));
        queue.push_back((n, project.spawn(&["tasks", "claim", &task, "--wait", "--agent", &name, "--json"])));
        project.wait_for_queue("section:Serial", n);
    }
    project.ok(&["tasks", "done", "F0", "--agent", "first"]);
    while let Some((n, waiter)) = queue.pop_front() {
        let answer = waiter.end();
        assert_eq!(answer.code, Some(0), "{answer:?}");
        for (later, waiter) in &mut queue {
            assert!(waiter.is_running(), "w{later} was served with w{n}");
        }
        project.ok(&["tasks", "done", &format!("F{n}"), "--agent", &format!("w{n}")]);
    }
}

#[test]
fn a_killed_waiter_loses_its_ticket() {
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let mut queue: Vec<_> = queue_up(&project, "F1", 4).into_iter().enumerate().collect();
    // One in the middle, and the first, which the release would have woken.
    for index in [2, 0] {
        let (_, killed) = queue.remove(index);
        killed.signal(Signal::KILL);
        assert_eq!(killed.end().code, None);
        assert_eq!(project.queue("F1"), queue.len() as u64);
    }
    assert_served_in_order(&project, "F1", queue, "first");
    let left = project.store().read(|view| view.count_tickets()).unwrap();
    assert_eq!(left, 0, "tickets of dead waiters are left");
}

#[test]
fn an_interrupted_waiter_leaves_the_queue_at_once() {
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let mut queue: Vec<_> = queue_up(&project, "F1", 4).into_iter().enumerate().collect();
    for (index, signal, code) in [(1, Signal::INT, 130), (1, Signal::TERM, 143)] {
        let (_, waiter) = queue.remove(index);
        waiter.signal(signal);
        let answer = waiter.end();
        assert_eq!(answer.code, Some(code), "{answer:?}");
        let tickets = project.store().read(|view| view.count_tickets()).unwrap();
        assert_eq!(tickets, queue.len() as u64, "its ticket is still there");
    }
    assert_served_in_order(&project, "F1", queue, "first");
}

#[test]
fn a_wait_that_times_out_has_its_own_exit_code_and_leaves_no_ticket() {
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    for args in [
        vec!["tasks", "claim", "F1", "--wait", "1s", "--agent", "w"],
        vec!["tasks", "claim", "F1", "--wait", "--timeout", "1s", "--agent", "w"],
        vec!["tasks", "claim", "F1", "--wait", "0s", "--agent", "w"],
        vec!["tasks", "update", "F1", "--status", "in_progress", "--timeout", "1s", "--agent", "w"],
        vec!["tasks", "next", "--claim", "--wait", "1s", "--agent", "w"],
        vec!["tasks", "next", "--claim", "--wait", "--timeout", "1s", "--agent", "w"],
    ] {
        let answer = project.run(&args);
        assert_eq!(answer.code, Some(9), "{args:?}: {answer:?}");
        assert_eq!(project.store().read(|view| view.count_tickets()).unwrap(), 0, "{args:?}");
    }
    let answer =
        project.run(&["tasks", "update", "F1", "--status", "in_progress", "--no-wait", "--agent", "w"]);
    assert_eq!(answer.code, Some(6), "{answer:?}");
}

#[test]
fn a_newcomer_never_overtakes_a_waiter() {
    // Tickets last long enough not to expire here, even on a slow machine.
    let project = Project::with_config("locking: {pollInterval: 10m}");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let mut queue = queue_up(&project, "F1", 1);
    let waiter = queue.remove(0);
    project.stop_between_writes(waiter.pid());
    project.ok(&["tasks", "release", "F1", "--agent", "first"]);
    for newcomer in ["first", "second"] {
        let answer = project.run(&["tasks", "claim", "F1", "--agent", newcomer, "--json"]);
        assert_eq!(answer.code, Some(6), "{answer:?}");
        assert_eq!(answer.json()["error"]["details"]["queue"], 1, "the refusal gives the number of waiters");
        let answer = project.run(&["tasks", "next", "--claim", "--agent", newcomer]);
        assert_eq!(answer.code, Some(10), "{answer:?}");
    }
    waiter.signal(Signal::CONT);
    let answer = waiter.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_release_while_a_waiter_begins_to_wait_is_not_lost() {
    // A waiter that was refused before the release and queues after it would sleep until its first poll.
    let project = Project::with_config("locking: {pollInterval: 10m}");
    project.add("F", 1);
    for round in 0..full_or(300, 30) {
        let (holder, name) = (format!("h{round}"), format!("w{round}"));
        project.ok(&["tasks", "claim", "F1", "--agent", &holder]);
        let release = ["tasks", "release", "F1", "--agent", &holder];
        let wait = ["tasks", "claim", "F1", "--wait", "--agent", &name];
        let waiter = project.spawn(&wait);
        let released = project.spawn(&release).end();
        assert_eq!(released.code, Some(0), "{released:?}");
        assert!(waiter.ends_within(HANG), "round {round}: the waiter sleeps although the task is free");
        assert_eq!(waiter.end().code, Some(0));
        project.ok(&["tasks", "release", "F1", "--agent", &name]);
    }
}

#[test]
fn another_poll_interval_does_not_shorten_the_life_of_a_ticket() {
    let project = Project::with_config("locking:\n  pollInterval: 10m\n");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let waiter = queue_up(&project, "F1", 1).remove(0);
    project.stop_between_writes(waiter.pid());
    project.ok(&["config", "set", "locking.pollInterval", "100ms"]);
    project.ok(&["tasks", "release", "F1", "--agent", "first"]);
    let age = || {
        let last = project.store().read(|view| Ok(view.all_tickets()?[0].refreshed_at)).unwrap();
        SystemClock.now().since(last)
    };
    until("three of the new intervals have passed", || age() > Duration::from_millis(500));
    let newcomer = project.run(&["tasks", "claim", "F1", "--agent", "second", "--json"]);
    assert_eq!(newcomer.code, Some(6), "{newcomer:?}");
    let newcomer = project.run(&["tasks", "next", "--claim", "--agent", "second"]);
    assert_eq!(newcomer.code, Some(10), "{newcomer:?}");
    waiter.signal(Signal::CONT);
    assert_eq!(waiter.end().code, Some(0));
}

#[test]
fn a_waiter_for_any_task_is_woken_by_new_work_and_by_a_release() {
    let project = Project::with_config("locking: {pollInterval: 10m}");
    let waiter = project.spawn(&["tasks", "next", "--claim", "--wait", "30m", "--agent", "w"]);
    until("it waits", || project.store().read(|view| view.count_tickets()).unwrap() == 1);
    project.ok(&["tasks", "add", "new work"]);
    assert_eq!(waiter.end().code, Some(0));
    let waiter = project.spawn(&["tasks", "next", "--claim", "--wait", "30m", "--agent", "v"]);
    until("it waits", || project.store().read(|view| view.count_tickets()).unwrap() == 1);
    project.ok(&["tasks", "release", "T1", "--agent", "w"]);
    assert_eq!(waiter.end().code, Some(0));
}

#[test]
fn a_waiter_takes_over_when_the_lease_expires() {
    let project = Project::with_config("locking: {pollInterval: 10m}");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first", "--ttl", "2s"]);
    let waiter = project.spawn(&["tasks", "claim", "F1", "--wait", "30m", "--agent", "w", "--json"]);
    let answer = waiter.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["data"]["takenOver"]["holder"]["id"], "first");
}

#[test]
fn a_release_meant_for_a_killed_waiter_wakes_the_next_without_a_poll() {
    let project = Project::with_config("locking: {pollInterval: 10m}");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let mut queue = queue_up(&project, "F1", 2);
    let (second, first) = (queue.remove(1), queue.remove(0));
    // It is stopped, so that it dies after its doorbell was rung and before it reacts.
    project.stop_between_writes(first.pid());
    project.ok(&["tasks", "release", "F1", "--agent", "first"]);
    first.signal(Signal::KILL);
    first.end();
    let answer = second.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_task_meant_for_a_killed_waiter_for_any_task_goes_to_the_next_without_a_poll() {
    let project = Project::with_config("locking: {pollInterval: 10m}");
    project.ok(&["sections", "add", "Empty"]);
    let wait = |name: &str, more: &[&str], count: u64| {
        let args = ["tasks", "next", "--claim", "--wait", "30m", "--agent", name, "--json"];
        let waiter = project.spawn(&[&args[..], more].concat());
        until("it waits", || project.store().read(|view| view.count_tickets()).unwrap() == count);
        waiter
    };
    let first = wait("first", &[], 1);
    let mut other = wait("other", &["--section", "Empty"], 2);
    let second = wait("second", &[], 3);
    project.stop_between_writes(first.pid());
    project.add("F", 1);
    first.signal(Signal::KILL);
    first.end();
    let answer = second.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(other.is_running());
    other.signal(Signal::TERM);
    other.end();
}

#[test]
fn a_hundred_waiters_cost_less_than_a_thousandth_of_a_processor_each() {
    let time = Duration::from_secs(full_or(60, 10));
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let waiters: Vec<Running> = (0..100)
        .map(|n| project.spawn(&["tasks", "claim", "F1", "--wait", "--agent", &format!("w{n}")]))
        .collect();
    project.wait_for_queue("F1", 100);
    let begun = Instant::now();
    let before: Vec<Duration> = waiters.iter().map(|w| processes::cpu(w.pid())).collect();
    std::thread::sleep(time);
    let wall = begun.elapsed();
    let mut shares: Vec<f64> = waiters
        .iter()
        .zip(before)
        .map(|(w, before)| processes::cpu(w.pid()).saturating_sub(before).as_secs_f64() / wall.as_secs_f64())
        .collect();
    shares.sort_by(f64::total_cmp);
    let percent = |index: usize| shares[index] * 100.0;
    let (median, most, worst) = (percent(50), percent(95), percent(99));
    eprintln!("100 waiters, {wall:.0?}: median {median:.4} %, 95 of them {most:.4} %, worst {worst:.4} %");
    // On a busy machine the kernel charges other work to a few of the waiters, so the 95th percentile is
    // compared.
    assert!(most < 0.1, "a waiter uses {most:.3} % of a processor");
}
