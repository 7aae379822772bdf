//! A runner whose wall clock is wrong by two hours beside one whose clock is right, and a clock that is set during an
//! attempt.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::{Clock, SystemClock, Timestamp};
use tenure_testkit::cli::{HASTY, Running, faketime, processes, until};

use crate::project::Project;

const START: [&str; 3] = ["runners", "start", "--foreground"];

/// Fails unless the wall clock of the runner is off by this many hours.
fn assert_off(project: &Project, pid: u32, hours: i64) {
    if project.server().is_some() {
        // Everything that it writes is dated by the server.
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(maps.contains("libfaketime"), "the clock is right");
        return;
    }
    let log = project.log(pid);
    let line = log.lines().next_back().unwrap();
    let time = line.strip_prefix('[').and_then(|line| line.split_once(']')).unwrap().0;
    let minutes = (Timestamp::parse(time).unwrap().as_millis() - SystemClock.now().as_millis()) / 60_000;
    assert_eq!((minutes + minutes.signum() * 30) / 60, hours, "{line}");
}

/// The pid of the runner. `faketime` is its parent.
fn only_runner(project: &Project) -> u32 {
    let runners = project.runners();
    assert_eq!(runners.len(), 1, "{runners:?}");
    u32::try_from(runners[0]["pid"].as_u64().unwrap()).unwrap()
}

/// Waits until the lease of the task was renewed this often.
fn wait_for_renewals(project: &Project, task: &str, times: usize) {
    let id = project.show(task)["id"].as_str().unwrap().to_owned();
    let beat = || {
        let query =
            format!("SELECT heartbeat_at FROM leases WHERE resource_id = '{id}' AND ended_at IS NULL");
        project.select(&query)
    };
    for _ in 0..times {
        let before = beat();
        assert_eq!(before.len(), 1, "{task} is held");
        until(&format!("the lease of {task} is renewed"), || beat() != before);
    }
}

fn assert_done_at_the_first_attempt(project: &Project, tasks: &[&str]) {
    for task in tasks {
        project.wait_until(task, "completed");
        assert_eq!(project.moves(task, "pending"), 1, "{task} was given back");
        assert_eq!(project.moves(task, "in_progress"), 1, "{task} was begun twice");
    }
}

#[test]
fn a_runner_two_hours_off_and_one_beside_it_leave_each_other_alone() {
    for (skew, hours) in [("+2h", 2), ("-2h", -2)] {
        let project = Project::with(&HASTY.replacen("runners: {", "runners: {maxConcurrent: 2, ", 1));
        for task in ["A", "B"] {
            project.task(task, &[&format!("mark {task}"), "wait go"]);
        }
        let wrong = Running::start(project.skewed(skew, &START));
        until("the first runner works", || project.marks("A").len() + project.marks("B").len() == 1);
        assert_off(&project, only_runner(&project), hours);
        let right = project.runner(&[]);
        until("both work", || project.marks("A").len() + project.marks("B").len() == 2);
        for task in ["A", "B"] {
            wait_for_renewals(&project, task, 2);
        }
        // A clean-up finds nothing with either clock.
        project.ok(&["locks", "cleanup"]);
        let cleaned = Running::start(project.skewed(skew, &["--json", "locks", "cleanup"])).end();
        assert_eq!(cleaned.data()["total"], 0, "{cleaned:?}");
        project.give("go");
        assert_done_at_the_first_attempt(&project, &["A", "B"]);
        for runner in [wrong, right] {
            assert_eq!(runner.end().code, Some(0));
        }

        // A lease that it no longer renews ends when its time is over.
        project.task("C", &["mark C", "hang"]);
        let wrong = Running::start(project.skewed(skew, &START));
        project.wait_for("C");
        let pid = only_runner(&project);
        project.stop_between_writes(pid);
        let waited = Instant::now();
        project.ok(&["tasks", "claim", "C", "--agent", "ann", "--wait", "100s"]);
        assert!(waited.elapsed() < Duration::from_mins(1), "{:?}", waited.elapsed());
        processes::signal(pid, Signal::KILL);
        drop(wrong.end());
    }
}

/// The command with a wall clock that is as far off as this file says.
fn with_clock(project: &Project, clock: &Path, args: &[&str]) -> Command {
    let ordinary = project.command(args);
    let mut command = faketime();
    command.args(["-f", "+0", "env", "-u", "FAKETIME", "FAKETIME_NO_CACHE=1"]);
    // Only the wall clock is changed, as on a machine whose clock is set.
    command.args(["FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"]);
    command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()));
    command.arg(ordinary.get_program()).args(ordinary.get_args()).env_clear().current_dir(project.root());
    for (name, value) in ordinary.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

#[test]
fn a_clock_that_is_set_during_an_attempt_neither_ends_it_nor_prolongs_its_lease() {
    let project = Project::hasty();
    let clock = project.path("clock");
    std::fs::write(&clock, "+0").unwrap();
    project.task("A", &["mark A", "wait go"]);
    let runner = Running::start(with_clock(&project, &clock, &START));
    project.wait_for("A");
    for step in ["+2h", "-2h", "+0"] {
        std::fs::write(&clock, step).unwrap();
        wait_for_renewals(&project, "A", 2);
        let refused = project.run(&["tasks", "claim", "A", "--agent", "bob"]);
        assert_eq!(refused.code, Some(6), "{step}: {refused:?}");
    }
    std::fs::write(&clock, "-2h").unwrap();
    project.give("go");
    assert_done_at_the_first_attempt(&project, &["A"]);
    assert_eq!(runner.end().code, Some(0));
    assert_eq!(project.marks("A").len(), 1);

    // After a step back, a lease that is no longer renewed does not last longer.
    std::fs::write(&clock, "+2h").unwrap();
    project.task("B", &["mark B", "hang"]);
    let runner = Running::start(with_clock(&project, &clock, &START));
    project.wait_for("B");
    let pid = only_runner(&project);
    assert_off(&project, pid, 2);
    std::fs::write(&clock, "-2h").unwrap();
    wait_for_renewals(&project, "B", 1);
    project.stop_between_writes(pid);
    let waited = Instant::now();
    project.ok(&["tasks", "claim", "B", "--agent", "ann", "--wait", "100s"]);
    assert!(waited.elapsed() < Duration::from_mins(1), "{:?}", waited.elapsed());
    processes::signal(pid, Signal::KILL);
    drop(runner.end());
}
