//! Wake-ups at the same time, and one project that holds its wake-up up.

use std::time::{Duration, Instant};

use crate::machine::{Machine, decisions};
use crate::world::Running;

#[test]
fn of_twenty_at_once_one_acts_and_the_others_end_at_once_with_zero() {
    let machine = Machine::new();
    let slow = machine.project("slow");
    slow.task("A", &["mark begun", "wait go"]);
    // Whoever acts has to wait here for its turn to write, so all the others come while it is at work.
    let gate = slow.hold_writers();
    let all: Vec<Running> = (0..20).map(|_| machine.spawn(&["--json", "runners", "wakeup"])).collect();
    let mut acting = Vec::new();
    let mut ended = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(8);
    let mut left = all;
    while left.len() > 1 && Instant::now() < deadline {
        let (running, over): (Vec<_>, Vec<_>) = left.into_iter().partition_map_running();
        ended.extend(over);
        left = running;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left.len(), 1, "nineteen have ended while one was at work");
    drop(gate);
    acting.extend(left.into_iter().map(Running::end));
    for answer in ended.into_iter().map(Running::end) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(answer.json()["data"]["overlapping"], true, "{answer:?}");
    }
    assert_eq!(acting[0].code, Some(0), "{:?}", acting[0]);
    assert_eq!(decisions(&acting[0].json()["data"])["slow"].0, "started");
    machine.wait_for("begun");
    assert_eq!(slow.runners().len(), 1);
}

/// Those that still run, and those that do not.
trait PartitionRunning {
    fn partition_map_running(self) -> (Vec<Running>, Vec<Running>);
}

impl<I: Iterator<Item = Running>> PartitionRunning for I {
    fn partition_map_running(self) -> (Vec<Running>, Vec<Running>) {
        let (mut running, mut over) = (Vec::new(), Vec::new());
        for mut process in self {
            if process.is_running() { running.push(process) } else { over.push(process) }
        }
        (running, over)
    }
}

#[test]
fn a_project_whose_store_is_stuck_does_not_keep_the_others_waiting() {
    let machine = Machine::new();
    let stuck = machine.project("a-stuck");
    stuck.task("A", &["mark begun-stuck"]);
    let others: Vec<_> = (0..3).map(|n| machine.project(&format!("b{n}"))).collect();
    for (n, project) in others.iter().enumerate() {
        project.task("A", &[&format!("mark begun-{n}"), "wait go"]);
    }
    let gate = stuck.hold_writers();
    let wake_up = machine.spawn(&["--json", "runners", "wakeup", "--timeout", "4s"]);
    for n in 0..3 {
        machine.wait_for(&format!("begun-{n}"));
    }
    // It ends by itself, with the gate still closed.
    let answer = wake_up.end();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["a-stuck"].0, "error", "{decided:?}");
    for n in 0..3 {
        assert_eq!(decided[&format!("b{n}")].0, "started", "{decided:?}");
    }
    drop(gate);
    // The next one finds what that one left.
    crate::world::until("it is served", || {
        machine.wake_up(&[]);
        stuck.status("A") == "completed"
    });
}

#[test]
fn a_runner_that_cannot_beat_because_the_store_is_stuck_is_not_killed() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.runner(&[]);
    machine.wait_for("begun");
    let gate = project.hold_writers();
    let stale = || project.ok(&["runners", "wakeup", "--dry-run"])["results"][0]["decision"] == "restarted";
    crate::world::until("it has been silent for too long", stale);
    let answer = machine.run(&["--json", "runners", "wakeup"]);
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["p"].0, "error", "{decided:?}");
    assert!(decided["p"].1.contains("has kept the store from being written"), "{decided:?}");
    assert!(crate::processes::is_alive(pid));
    drop(gate);
    machine.give("go");
    project.wait_until("A", "completed");
}
