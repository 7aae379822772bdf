//! `kill -9` of a runner at random moments.

use std::time::Duration;

use rustix::process::Signal;

use tenure_testkit::cli::{Dice, full_or, processes, until};

use crate::project::Project;

#[test]
fn the_next_runner_repairs_everything_that_a_killed_one_left() {
    let mut dice = Dice::for_test("kill -9");
    let project = Project::with(
        "runners: {preset: pretend, killGrace: 300ms}\nlocking: {pollInterval: 1s}\ntasks: {maxAttempts: 1000}",
    );
    for round in 0..full_or(100, 10) {
        let keys: Vec<String> = (0..3).map(|n| format!("R{round}.{n}")).collect();
        project.task(&keys[0], &["print one"]);
        project.task(&keys[1], &["fork", "deaf", "away", "mark here", "sleep 0.2"]);
        project.task(&keys[2], &["print three"]);
        let mut runner = project.spawn(&["runners", "start", "--foreground"]);
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        let was_running = runner.is_running();
        runner.signal(Signal::KILL);
        drop(runner);
        let before = project.agents();

        // The next start reconciles once, and returns when it has finished.
        let next = project.ok(&["runners", "start", "--idle-timeout", "10m"]);
        let now = project.agents();
        let left: Vec<_> = before.iter().filter(|pid| now.contains(pid)).collect();
        assert!(left.is_empty(), "round {round}: processes of the old attempt are alive: {left:?}");
        until("the backlog is finished", || keys.iter().all(|key| project.status(key) == "completed"));
        project.ok(&["runners", "stop", next["runner"]["id"].as_str().unwrap()]);
        project.expect_no_agents();
        assert!(project.locks().is_empty());
        for key in &keys {
            assert_eq!(project.moves(key, "completed"), 1, "round {round}, {key}, running: {was_running}");
        }
    }
}

#[test]
fn when_the_next_runner_has_its_slot_no_process_of_the_old_attempt_is_alive() {
    let project = Project::new();
    project.task("A", &["deaf", "fork", "away", "mark begun", "hang"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let before = project.agents();
    assert!(before.len() >= 4, "{before:?}");
    runner.signal(Signal::KILL);
    drop(runner);
    project.ok(&["tasks", "skip", "A", "--force"]);
    // It finds nothing to do, and reports that only after it has repaired what was left.
    let next = project.work(&[]);
    assert_eq!(next.code, Some(0), "{next:?}");
    project.expect_no_agents();
    assert!(next.err.contains("Reaped the processes left by attempt"), "{}", next.err);
}

#[test]
fn a_process_of_the_old_agent_without_its_environment_is_reaped() {
    let project = Project::new();
    project.task("A", &["clear cleared", "wait cleared", "mark begun", "wait never"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let cleared = std::fs::read_to_string(project.shared("cleared")).unwrap().trim().parse().unwrap();
    assert!(processes::is_alive(cleared));
    runner.signal(Signal::KILL);
    drop(runner);
    // The agent itself dies with its runner, so nothing is left that has the mark.
    until("the agent has died", || project.agents().is_empty());
    assert!(processes::is_alive(cleared));
    project.ok(&["tasks", "claim", "A", "--agent", "next"]);
    assert!(!processes::is_alive(cleared), "the claim returned while the old agent's child was alive");
}

#[test]
fn stop_by_force_kills_the_runner_and_repairs_what_it_leaves() {
    let project = Project::new();
    project.task("A", &["deaf", "fork", "away", "mark begun", "hang"]);
    let started = project.ok(&["runners", "start"]);
    project.wait_for("begun");
    project.ok(&["runners", "stop", "--force"]);
    project.expect_no_agents();
    assert_eq!(project.status("A"), "pending");
    assert!(project.locks().is_empty());
    let listed = project.ok(&["runners", "list", "--ended", "1"])["runners"][0].clone();
    assert_eq!(
        (listed["id"].clone(), listed["status"].as_str()),
        (started["runner"]["id"].clone(), Some("failed"))
    );
}

#[test]
fn a_clean_up_closes_the_records_of_dead_runners() {
    let project = Project::new();
    let runner = project.runner(&["--idle-timeout", "10m"]);
    let id = project.runners()[0]["id"].clone();
    runner.signal(Signal::KILL);
    drop(runner.end());
    assert_eq!(project.select("SELECT count(*) FROM runners WHERE completed_at IS NULL"), ["1"]);
    let preview = project.ok(&["locks", "cleanup", "--dry-run"]);
    let cleaned = project.ok(&["locks", "cleanup"]);
    assert_eq!((&preview["closedRunners"][0], &cleaned["closedRunners"][0]), (&id, &id));
    assert_eq!(project.select("SELECT count(*) FROM runners WHERE completed_at IS NULL"), ["0"]);
    assert_eq!(project.run(&["locks", "cleanup"]).out.trim(), "Nothing to clean up.");
}
