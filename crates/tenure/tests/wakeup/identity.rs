//! Only the process that was recorded is ever killed.

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use tenure_testkit::cli::{Project, processes, until};

use crate::machine::{Machine, make_silent};

/// A process of the test that is unrelated to tenure.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As if the killed runner's pid now belonged to the bystander: the recorded start time differs.
fn reuse_pid_for(project: &Project, bystander: &Bystander) {
    project.rewrite_processes(|process| process["pid"] = bystander.0.id().into());
}

#[test]
fn a_recycled_pid_is_never_killed() {
    for silent in [false, true] {
        let machine = Machine::new();
        let project = machine.project("p");
        project.task("A", &["mark begun", "wait go"]);
        let pid = project.detached_runner(&[]);
        machine.wait_for("begun");
        processes::signal(pid, Signal::KILL);
        until("it is dead", || !processes::is_alive(pid));
        let mut bystander = Bystander::new();
        reuse_pid_for(&project, &bystander);
        if silent {
            project.sql("UPDATE runners SET heartbeat_at = 1; UPDATE leases SET heartbeat_at = 1, expires_at = 2 WHERE ended_at IS NULL");
        }
        let decided = machine.wake_up(&[]);
        assert_eq!(decided["p"].0, "restarted", "{decided:?}");
        assert!(decided["p"].1.ends_with("was dead"), "neither rung nor killed: {decided:?}");
        assert!(bystander.is_alive());
        machine.give("go");
        project.wait_until("A", "completed");
        assert!(bystander.is_alive());
    }
}

#[test]
fn a_stopped_runner_that_continues_when_it_is_rung_is_not_killed() {
    let machine = Machine::new();
    let project = machine.project("p");
    let pid = project.detached_runner(&["--idle-timeout", "10m"]);
    project.stop_between_writes(pid);
    until("it has been silent for too long", || machine.wake_up(&["--dry-run"])["p"].0 == "restarted");
    let wake_up = machine.spawn(&["--json", "runners", "wakeup"]);
    until("it was rung", || machine.wakeup_log().contains("is silent; ringing it"));
    processes::signal(pid, Signal::CONT);
    let answer = wake_up.end();
    let decided = crate::machine::decisions(&answer.json()["data"]);
    assert_eq!(decided["p"].0, "running", "{decided:?}");
    assert!(processes::is_alive(pid));
    assert_eq!(machine.wake_up(&[])["p"].0, "running");
    assert_eq!(project.runners().len(), 1);
}

/// The situation after a suspended laptop wakes: the last heartbeat is hours old, and the next one is not due soon.
#[test]
fn a_runner_that_is_rung_renews_at_once_even_if_no_heartbeat_is_due() {
    let machine = Machine::with(&crate::machine::slow());
    let idle = machine.project("idle");
    let working = machine.project("working");
    working.task("A", &["mark begun", "wait go"]);
    let pids = [idle.detached_runner(&["--idle-timeout", "10m"]), working.detached_runner(&[])];
    machine.wait_for("begun");
    for project in [&idle, &working] {
        make_silent(project);
    }
    let decided = machine.wake_up(&[]);
    for name in ["idle", "working"] {
        assert_eq!(decided[name].0, "running", "{decided:?}");
        assert!(decided[name].1.ends_with("it answered when it was rung"), "{decided:?}");
    }
    assert!(pids.into_iter().all(processes::is_alive));
    machine.give("go");
    working.wait_until("A", "completed");
}
