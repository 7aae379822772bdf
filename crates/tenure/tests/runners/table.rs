//! The error cases of a runner, with a test for each.

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn after_a_runner_crash_the_next_one_takes_its_task_over() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    runner.signal(Signal::KILL);
    drop(runner);
    project.give("go");
    let next = project.work(&[]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(project.status("A"), "completed");
    assert_eq!(project.marks("begun").len(), 2, "both runners began it");
    assert_eq!(project.moves("A", "completed"), 1);
}

#[test]
fn a_failed_task_is_marked_and_released_and_the_runner_continues() {
    let project = Project::new();
    project.task("A", &["print no way", "exit 3"]);
    project.task("B", &["print fine"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("failed", "completed"));
    assert!(project.locks().is_empty());
    assert!(ran.err.contains("Ended A: exited with 3: no way; the task is pending again"), "{}", ran.err);
    assert!(ran.err.contains("Ended A: exited with 3: no way; the task is failed"), "{}", ran.err);
    let once = {
        project.ok(&["tasks", "retry", "A"]);
        project.work(&["--once"])
    };
    assert_eq!(once.code, Some(1), "--once says whether its task failed: {once:?}");
}

#[test]
fn a_runner_without_pending_tasks_goes_idle_and_holds_nothing() {
    let project = Project::new();
    project.ok(&["sections", "add", "Backend"]);
    project.task_in("A", &[], &["--section", "Backend"]);
    let mut runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(runner.pid(), "Going idle");
    assert_eq!(project.status("A"), "completed");
    assert!(project.locks().is_empty());
    assert!(runner.is_running());
    until("it is listed as idle", || project.ok(&["runners", "list"])["runners"][0]["status"] == "idle");
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
    let ended = project.ok(&["runners", "list", "--ended", "1"])["runners"][0].clone();
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["completedAt"].is_string());
}

#[test]
fn a_runner_waits_for_a_lock_held_by_another_and_proceeds() {
    let project = Project::new();
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob"]);
    let runner = project.runner(&["--task", "A"]);
    project.wait_for_log(runner.pid(), "Waiting for task lock...");
    assert!(project.marks("begun").is_empty());
    project.ok(&["tasks", "release", "A", "--agent", "bob"]);
    let ran = runner.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn a_runner_claims_an_expired_lock_and_continues_the_task() {
    let project = Project::new();
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "1s"]);
    let runner = project.runner(&["--task", "A"]);
    let pid = runner.pid();
    let ran = runner.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.status("A"), "completed");
    let log = project.log(pid);
    assert!(log.contains("Lock exists but expired ("), "{log}");
    assert!(log.contains("Claiming expired lock"), "{log}");
    let late = project.run(&["--json", "tasks", "done", "A", "--agent", "bob"]);
    assert_eq!(late.code, Some(8), "{late:?}");
}

#[test]
fn an_agent_timeout_kills_the_agent_releases_the_lock_and_fails_the_task() {
    let project = Project::with("runners: {preset: pretend, killGrace: 200ms, agentTimeout: 1s}");
    project.task("A", &["deaf", "fork", "away", "stream 100000"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.status("A"), "failed");
    assert!(ran.err.contains("not finished after 1s"), "{}", ran.err);
    assert!(project.locks().is_empty());
    project.expect_no_agents();
}

#[test]
fn a_silent_agent_is_killed_and_its_task_retried_until_the_attempts_are_used_up() {
    let project = Project::with("runners: {preset: pretend, killGrace: 200ms, subprocessHangTimeout: 1s}");
    project.task("A", &["mark begun", "hang"]);
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("no output for 1s"), "{}", ran.err);
    let task = project.show("A");
    assert_eq!((task["status"].as_str(), task["attempts"].as_u64()), (Some("failed"), Some(3)), "{task}");
    assert_eq!(project.marks("begun").len(), 3);
    project.expect_no_agents();
}

#[test]
fn an_agent_that_prints_now_and_then_is_not_hung() {
    let project = Project::with("runners: {preset: pretend, killGrace: 200ms, subprocessHangTimeout: 2s}");
    project.task("A", &["print 1", "sleep 1", "print 2", "sleep 1", "print 3", "sleep 1"]);
    assert_eq!(project.work(&[]).code, Some(0));
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn ended_runners_are_forgotten_when_their_logs_expire() {
    let project = Project::new();
    // The user's own setting: the directory has the runners of all projects.
    project.sandbox().configure_user("runners: {logRetention: 1d}");
    project.work(&[]);
    let directory = rusqlite::Connection::open(project.tenure_home().join("tenure.db")).unwrap();
    let ended = || -> Vec<String> {
        let ended = project.ok(&["runners", "list", "--ended", "10"])["runners"].clone();
        ended.as_array().unwrap().iter().map(|runner| runner["id"].as_str().unwrap().to_owned()).collect()
    };
    let [old] = ended().try_into().unwrap();
    project.work(&[]);
    assert_eq!(ended().len(), 2, "a day has not passed");
    let days = 86_400_000 * 2;
    directory
        .execute("UPDATE known_runners SET completed_at = completed_at - ?1 WHERE id = ?2", (days, &old))
        .unwrap();
    project.work(&[]);
    let left = ended();
    assert!(left.len() == 2 && !left.contains(&old), "{old} is in {left:?}");
}
