//! Stopping: the agent's tree is gone, the task is pending, nothing is held, and the exit code is 0.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn sigterm_ends_the_whole_tree_of_the_agent_requeues_and_releases() {
    for signal in [Signal::TERM, Signal::INT] {
        let project = Project::with("runners: {preset: pretend, killGrace: 1s}");
        project.ok(&["sections", "add", "Backend"]);
        project.task_in("A", &["deaf", "fork", "away", "mark begun", "hang"], &["--section", "Backend"]);
        let runner = project.runner(&[]);
        project.wait_for("begun");
        assert!(project.agents().len() >= 4);
        let asked = Instant::now();
        runner.signal(signal);
        let ran = runner.end();
        let took = asked.elapsed();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        project.expect_no_agents();
        assert_eq!(project.status("A"), "pending");
        assert_eq!(project.show("A")["attempts"], 0, "a stop is not charged");
        assert_eq!(project.ok(&["locks", "list"])["total"], 0, "neither the section nor the slot is held");
        // The grace and a second, and as much again for a busy machine.
        assert!(took < Duration::from_secs(4), "{took:?}");
        eprintln!("{signal:?}: ended {} ms after the signal, the grace is 1000 ms", took.as_millis());
    }
}

#[test]
fn an_agent_that_listens_to_sigterm_need_not_wait_for_the_grace() {
    let project = Project::with("runners: {preset: pretend, killGrace: 60s}");
    project.task("A", &["fork", "mark begun", "hang"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let asked = Instant::now();
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
    assert!(asked.elapsed() < Duration::from_secs(30));
    project.expect_no_agents();
}

#[test]
fn an_idle_or_waiting_runner_stops_at_once() {
    let project = Project::new();
    let idle = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(idle.pid(), "Going idle");
    idle.signal(Signal::TERM);
    assert_eq!(idle.end().code, Some(0));
    project.task("A", &[]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob"]);
    let waiting = project.runner(&["--task", "A"]);
    project.wait_for_log(waiting.pid(), "Waiting for task lock...");
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.end().code, Some(0));
    assert_eq!(project.ok(&["locks", "show", "A"])["queue"], 0, "it has left the queue");
}

#[test]
fn stop_in_one_project_never_touches_the_runner_of_another() {
    let (a, b) = (Project::new(), Project::new());
    a.task("A", &["mark begun", "wait go"]);
    b.task("B", &["mark begun", "wait go"]);
    // One home for both: it is the same person on the same machine.
    let with_home = |project: &Project, args: &[&str]| {
        let mut command = project.command(args);
        command.env("TENURE_HOME", a.tenure_home());
        command.output().unwrap()
    };
    let started = a.ok(&["runners", "start"]);
    assert!(with_home(&b, &["runners", "start"]).status.success());
    a.wait_for("begun");
    b.wait_for("begun");
    let listed = with_home(&b, &["runners", "list"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("MULTI-PROJECT WARNING: 2 different projects have runners."), "{text}");
    let stopped = with_home(&b, &["--json", "runners", "stop"]);
    assert!(stopped.status.success());
    b.wait_until("B", "pending");
    b.expect_no_agents();
    for force in [false, true] {
        let args: &[&str] = if force { &["runners", "stop", "--force"] } else { &["runners", "stop"] };
        assert!(with_home(&b, args).status.success(), "nothing running is no error");
    }
    let left = a.ok(&["runners", "list"]);
    assert_eq!((left["total"].as_u64(), &left["runners"][0]["id"]), (Some(1), &started["runner"]["id"]));
    assert!(!a.agents().is_empty());
    a.give("go");
    a.wait_until("A", "completed");
    until("its runner ends by itself", || a.ok(&["runners", "list"])["total"] == 0);
}
