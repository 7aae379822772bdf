//! A runner that is stopped past the expiry of its lease (R3), and a store that is blocked for a while.

use std::time::Duration;

use rustix::process::Signal;

use tenure_core::{Clock, SystemClock, Timestamp};
use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn a_runner_paused_past_its_expiry_changes_nothing_after_a_takeover() {
    let project = Project::hasty();
    project.task("A", &["deaf", "fork", "mark begun", "wait go"]);
    project.task("B", &["mark second"]);
    let mut runner = project.runner(&["--idle-timeout", "10m"]);
    project.wait_for("begun");
    runner.signal(Signal::STOP);
    until("its lease has run out", || project.ok(&["locks", "show", "A"])["lock"]["expired"] == true);
    let taken = project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "1h"]);
    project.expect_no_agents();
    let before = project.show("A");
    let fence = taken["lease"]["fence"].clone();
    let kinds = || -> Vec<String> {
        let events = project.ok(&["events", "--task", "A"])["events"].clone();
        let kinds = events.as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned());
        kinds.collect()
    };
    let events = kinds();
    project.give("go");
    runner.signal(Signal::CONT);
    project.wait_for_log(runner.pid(), "Lost A: ");
    let log = project.log(runner.pid());
    assert!(log.contains("bob has it now; its agent was ended and nothing was changed"), "{log}");
    project.wait_until("B", "completed");
    let after = project.show("A");
    assert_eq!(before, after, "the other's task is as it was");
    assert_eq!(after["lease"]["fence"], fence);
    let recorded = [events.as_slice(), &["write.rejected".to_owned()]].concat();
    assert_eq!(kinds(), recorded, "its late heartbeat is recorded once");
    assert!(runner.is_running(), "it carries on");
    project.ok(&["tasks", "done", "A", "--agent", "bob"]);
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
}

#[test]
fn a_runner_paused_past_its_expiry_continues_if_its_task_was_not_taken() {
    let project = Project::hasty();
    project.task("A", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    runner.signal(Signal::STOP);
    until("its lease has run out", || project.ok(&["locks", "show", "A"])["lock"]["expired"] == true);
    runner.signal(Signal::CONT);
    until("it has renewed", || project.ok(&["locks", "show", "A"])["lock"]["expired"] == false);
    project.give("go");
    let ran = runner.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.status("A"), "completed");
    assert_eq!(project.marks("begun").len(), 1, "the same attempt");
}

#[test]
fn heartbeats_resume_as_soon_as_a_busy_store_allows() {
    let project = Project::hasty();
    project.task("A", &["mark begun", "wait go"]);
    let mut runner = project.runner(&[]);
    project.wait_for("begun");
    let renewed_at = || {
        let lock = project.ok(&["locks", "show", "A"])["lock"].clone();
        lock["heartbeatAt"].as_str().unwrap_or_default().to_owned()
    };
    for _ in 0..3 {
        let gate = project.hold_writers();
        let before = renewed_at();
        // Reading still works.
        until("two heartbeats are overdue", || {
            let last = Timestamp::parse(&renewed_at()).unwrap();
            SystemClock.now().since(last) > Duration::from_millis(1200)
        });
        drop(gate);
        until("it is renewed again", || renewed_at() > before);
        assert_eq!(project.ok(&["locks", "show", "A"])["lock"]["expired"], false);
    }
    assert!(runner.is_running());
    project.give("go");
    assert_eq!(runner.end().code, Some(0));
    assert_eq!((project.status("A").as_str(), project.marks("begun").len()), ("completed", 1));
}

#[test]
fn heartbeats_stay_on_time_while_others_write_all_the_time() {
    let project = Project::hasty();
    project.task("A", &["mark begun", "wait go"]);
    let runner = project.runner(&[]);
    project.wait_for("begun");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (project, done) = (&project, &done);
        for writer in 0..2 {
            scope.spawn(move || {
                for n in 0..1000 {
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    project.run(&["tasks", "add", &format!("noise {writer} {n}"), "--depends-on", "A"]);
                }
            });
        }
        for _ in 0..6 {
            let before = project.ok(&["locks", "show", "A"])["lock"]["heartbeatAt"].clone();
            until("it is renewed", || {
                let lock = project.ok(&["locks", "show", "A"])["lock"].clone();
                assert_eq!(lock["expired"], false, "{lock}");
                lock["heartbeatAt"] != before
            });
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    runner.signal(Signal::TERM);
    assert_eq!(runner.end().code, Some(0));
}
