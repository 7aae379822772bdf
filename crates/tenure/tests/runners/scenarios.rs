//! Runners that share a section, and locks that expire, each from a cold start, with the exact lines of the log.

use rustix::process::Signal;

use crate::project::Project;

/// The lines of a log without their times; what differs between runs is replaced by a name.
fn transcript(project: &Project, pid: u32, names: &[(String, &str)]) -> Vec<String> {
    let log = project.log(pid);
    let lines = log.lines().map(|line| {
        let mut text = line.split_once("] ").map_or(line, |(_, text)| text).to_owned();
        for (id, name) in names {
            text = text.replace(id, name);
        }
        text
    });
    lines.collect()
}

/// Asserts that `lines` has all of `wanted` in that order, each as the beginning of a line.
fn expect_in_order(lines: &[String], wanted: &[&str]) {
    let mut rest = lines.iter();
    for words in wanted {
        assert!(
            rest.any(|line| line.starts_with(words)),
            "{words:?} is missing or out of order in:\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn two_runners_take_turns_in_the_same_section() {
    let project = Project::with(
        "runners: {preset: pretend, maxConcurrent: 2, killGrace: 300ms}\nlocking: {pollInterval: 500ms}",
    );
    project.ok(&["sections", "add", "Backend"]);
    project.task_in("T1", &["mark one", "wait go1"], &["--section", "Backend"]);
    project.task_in("T2", &["mark two", "wait go2"], &["--section", "Backend"]);
    let first = project.runner(&[]);
    project.wait_for("one");
    let second = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for_log(second.pid(), "Waiting for section lock...");
    assert!(project.marks("two").is_empty());
    project.give("go1");
    // It keeps the section and continues in it, although another runner is queued.
    project.wait_for("two");
    project.wait_for_log(second.pid(), "Section still locked");
    let list = project.ok(&["runners", "list"]);
    let id_of = |pid: u32| {
        let runners = list["runners"].as_array().unwrap();
        runners.iter().find(|r| r["pid"] == pid).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let names = [(id_of(first.pid()), "A"), (id_of(second.pid()), "B")];
    project.give("go2");
    project.wait_for_log(second.pid(), "Going idle");
    let (a, b) = (first.pid(), second.pid());
    assert_eq!(first.end().code, Some(0));
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, Some(0));
    expect_in_order(
        &transcript(&project, a, &names),
        &[
            "Starting \"Task T1\" (T1) in Backend section",
            "Acquired lock on T1",
            "Working on T1...",
            "Completed T1",
            "Released task lock",
            "Checking for next task in Backend...",
            "Found T2, acquiring lock...",
            "Acquired lock on T2",
            "Working on T2...",
            "Completed T2",
            "Released task lock",
            "No more tasks in Backend, releasing section lock",
            "Looking for tasks... none pending",
        ],
    );
    expect_in_order(
        &transcript(&project, b, &names),
        &[
            "Wants to start \"Task T2\" in Backend section",
            "T2 has no lock, but checking section...",
            "Section Backend is locked by runner A",
            "Waiting for section lock...",
            "Section still locked (runner A got T2)",
            "Waiting...",
            "Section lock released!",
            "Looking for tasks... none pending",
            "Going idle",
        ],
    );
    for key in ["T1", "T2"] {
        assert_eq!((project.status(key).as_str(), project.moves(key, "completed")), ("completed", 1));
    }
}

#[test]
fn a_lock_expires_because_its_runner_crashed() {
    let project = Project::new();
    project.task("T1", &["mark begun", "wait go"]);
    let first = project.runner(&[]);
    project.wait_for("begun");
    first.signal(Signal::KILL);
    drop(first);
    project.give("go");
    let second = project.runner(&[]);
    let pid = second.pid();
    assert_eq!(second.end().code, Some(0));
    expect_in_order(
        &transcript(&project, pid, &[]),
        &[
            "Lock exists but expired (its holder is dead)",
            "Claiming expired lock",
            "Resuming/restarting Task T1",
            "Acquired lock on T1",
            "Completed T1",
        ],
    );
}

#[test]
fn a_lock_expires_while_its_runner_sleeps() {
    let project = Project::with(
        "runners: {preset: pretend, maxConcurrent: 2, killGrace: 300ms, heartbeatInterval: 500ms, staleTimeout: 2s}\n\
         locking: {pollInterval: 500ms, taskTimeout: 2s, sectionTimeout: 2s}",
    );
    project.ok(&["sections", "add", "Backend"]);
    project.task_in("T1", &["mark begun", "wait go"], &["--section", "Backend"]);
    project.task_in("T2", &[], &["--section", "Backend"]);
    let first = project.runner(&[]);
    project.wait_for("begun");
    let second = project.runner(&[]);
    project.wait_for_log(second.pid(), "Waiting for section lock...");
    first.signal(Signal::STOP);
    project.give("go");
    let pid = second.pid();
    assert_eq!(second.end().code, Some(0));
    expect_in_order(
        &transcript(&project, pid, &[]),
        &[
            "Waiting for section lock...",
            "Section lock released!",
            "Lock exists but expired (20",
            "Claiming expired lock",
            "Resuming/restarting Task T1",
            "Completed T1",
            "Completed T2",
        ],
    );
    assert_eq!(project.moves("T1", "completed"), 1);
    first.signal(Signal::CONT);
    let woken = first.end();
    assert!(woken.err.contains("Lost T1: "), "{}", woken.err);
    assert_eq!(project.moves("T1", "completed"), 1);
}

#[test]
fn a_runner_keeps_its_section_when_its_agent_reports_done_itself() {
    let project = Project::with(
        "runners: {preset: pretend, maxConcurrent: 2, killGrace: 300ms}\nlocking: {pollInterval: 500ms}",
    );
    project.ok(&["sections", "add", "Backend"]);
    let steps = ["mark one", "wait go", "tenure task done T1", "sleep 0.5"];
    project.task_in("T1", &steps, &["--section", "Backend"]);
    project.task_in("T2", &["mark two"], &["--section", "Backend"]);
    let first = project.runner(&[]);
    project.wait_for("one");
    let second = project.runner(&[]);
    project.wait_for_log(second.pid(), "Waiting for section lock...");
    project.give("go");
    let first = first.end();
    assert_eq!(first.code, Some(0));
    assert!(first.err.contains("Completed T2"), "{}", first.err);
    assert_eq!(second.end().code, Some(0));
}
