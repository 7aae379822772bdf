//! Stopping: Ctrl+C, cancelling, and an exclusive lock.

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn ctrl_c_stops_the_items_processes_too_and_the_job_is_resumable_at_once() {
    let p = Project::new();
    p.numbers("items.txt", 6);
    p.script(
        "wait.sh",
        "echo $$ >>\"$PRETEND/begun\"; test -e \"$PRETEND/go\" && exit 0; sleep 1000 & sleep 1000",
    );
    let args = ["--json", "jobs", "start", "a", "--items", "items.txt", "--parallel", "3", "--", "./wait.sh"];
    let running = p.spawn(&args);
    until("three are at work", || p.marks("begun").len() == 3);
    running.signal(Signal::INT);
    let answer = running.end();
    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert_eq!(answer.json()["error"]["details"]["job"]["status"], "interrupted");
    let left = p.agents();
    assert!(left.is_empty(), "processes of items: {left:?}");
    assert!(
        !std::fs::read_dir(p.tenure_home().join("resume_locks")).unwrap().any(|_| true),
        "the gate is open"
    );
    p.give("go");
    let answer = p.run(&["--json", "resume", "a"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(p.successes(), [1, 2, 3, 4, 5, 6]);
    let item = p.ok(&["jobs", "show", "a", "--item", "1"])["item"].clone();
    assert_eq!(item["failures"], 0, "an interruption is no failure");
}

#[test]
fn a_job_with_a_coordinator_is_not_cancelled_and_an_interrupted_one_is() {
    let p = Project::new();
    p.numbers("items.txt", 2);
    p.script("wait.sh", "echo $$ >>\"$PRETEND/begun\"; sleep 1000");
    let running = p.spawn(&["jobs", "start", "a", "--items", "items.txt", "--", "./wait.sh"]);
    until("one is at work", || p.marks("begun").len() == 1);
    let refused = p.run(&["--json", "jobs", "cancel", "a"]);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "RESUME_LOCKED");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
    assert_eq!(p.ok(&["jobs", "cancel", "a"])["job"]["status"], "cancelled");
    assert_eq!(p.run(&["resume", "a"]).code, Some(0), "given up is over, too");
    assert_eq!(p.run(&["jobs", "retry", "a"]).code, Some(2));
    assert_eq!(p.marks("begun").len(), 1);
}

#[test]
fn cancelling_ends_what_workers_have_of_the_job() {
    let p = Project::hasty();
    p.numbers("items.txt", 2);
    p.script("wait.sh", "echo $$ >>\"$PRETEND/begun\"; sleep 1000");
    let coordinator = p.spawn(&["jobs", "start", "a", "--items", "items.txt", "--", "./wait.sh"]);
    until("one is at work", || p.marks("begun").len() == 1);
    let worker = p.spawn(&["--json", "jobs", "work", "a"]);
    until("the worker has the other", || p.marks("begun").len() == 2);
    coordinator.signal(Signal::KILL);
    coordinator.end();
    assert_eq!(p.ok(&["jobs", "cancel", "a"])["job"]["status"], "cancelled");
    let answer = worker.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["data"]["job"]["status"], "cancelled");
    p.expect_no_agents();
}

#[test]
fn no_item_is_started_while_the_project_is_locked_exclusively() {
    let p = Project::new();
    p.numbers("items.txt", 4);
    p.script("mark.sh", "echo $$ >>\"$PRETEND/begun\"; while [ ! -e \"$PRETEND/go\" ]; do sleep 0.02; done");
    let running = p.spawn(&["jobs", "start", "a", "--items", "items.txt", "--", "./mark.sh"]);
    until("the first is at work", || p.marks("begun").len() == 1);
    let me = std::process::id().to_string();
    p.ok(&["exclusive", "acquire", "--holder", "release-tool", "--pid", &me]);
    p.give("go");
    until("the first has ended, for a cycle under way finishes", || p.successes() == [1]);
    until("it steps aside", || running.so_far().contains("Skipping database (locked by release-tool)"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(p.marks("begun").len(), 1);
    p.ok(&["exclusive", "release"]);
    let answer = running.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(p.successes(), [1, 2, 3, 4]);
}
