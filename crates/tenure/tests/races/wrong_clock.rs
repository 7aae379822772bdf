//! Processes whose wall clock is wrong by two hours beside healthy ones, and a clock that is set while they work.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_core::Timestamp;
use tenure_testkit::cli::{Answer, Running, faketime, until};

use crate::harness::Project;

fn run(project: &Project, skew: &str, args: &[&str]) -> Answer {
    Running::start(project.skewed(skew, &[&["--json"], args].concat())).end()
}

/// Fails unless the last event is dated by a clock that is wrong by about two hours.
fn assert_skewed(project: &Project) {
    let feed = project.feed();
    let at = |n: usize| Timestamp::parse(feed[n]["at"].as_str().unwrap()).unwrap().as_millis();
    let hours = (at(feed.len() - 1) - at(0)).abs() / 1000 / 60;
    assert!((110..130).contains(&hours), "the skew took no effect: {feed:#?}");
}

#[test]
fn a_client_two_hours_off_neither_takes_nor_keeps_more_than_others() {
    for skew in ["+2h", "-2h"] {
        let project = Project::with_config("locking: {pollInterval: 1s}");
        project.add("F", 4);
        project.ok(&["tasks", "claim", "F1", "--agent", "ann", "--ttl", "10m"]);
        let begun = project.root().join("begun");
        let script = format!("touch {}; exec sleep 600", begun.display());
        let mut at_work = project.spawn(&["tasks", "run", "F2", "--agent", "cat", "--", "sh", "-c", &script]);
        until("the command runs", || begun.exists());
        for held in ["F1", "F2"] {
            let refused = run(&project, skew, &["tasks", "claim", held, "--agent", "bob"]);
            assert_eq!(refused.code, Some(6), "{refused:?}");
        }
        assert_eq!(run(&project, skew, &["locks", "cleanup"]).code, Some(0));
        project.ok(&["tasks", "check", "F1", "--agent", "ann"]);
        assert!(at_work.is_running());

        // What it is granted ends when its ttl has passed, for others and for itself.
        let granted = run(&project, skew, &["tasks", "claim", "F3", "--agent", "bob", "--ttl", "2s"]);
        assert_eq!(granted.code, Some(0), "{granted:?}");
        assert_skewed(&project);
        assert_eq!(project.run(&["tasks", "claim", "F3", "--agent", "ann"]).code, Some(6));
        let waited = Instant::now();
        project.ok(&["tasks", "claim", "F3", "--agent", "ann", "--ttl", "2s", "--wait", "60s"]);
        assert!(waited.elapsed() < Duration::from_secs(30), "{:?}", waited.elapsed());
        let taken = run(&project, skew, &["tasks", "claim", "F3", "--agent", "bob", "--wait", "60s"]);
        assert_eq!(taken.code, Some(0), "{taken:?}");

        // Its running work is not taken from it either.
        let _ = std::fs::remove_file(&begun);
        let mut skewed = Running::start(
            project.skewed(skew, &["tasks", "run", "F4", "--agent", "dan", "--", "sh", "-c", &script]),
        );
        until("the command runs", || begun.exists());
        assert_eq!(project.run(&["tasks", "claim", "F4", "--agent", "ann"]).code, Some(6));
        assert!(skewed.is_running() && at_work.is_running());
        for process in [skewed, at_work] {
            process.signal(Signal::TERM);
            process.end();
        }
    }
}

#[test]
fn a_clock_that_is_set_does_not_delay_the_retry_of_an_item() {
    let project = Project::new();
    let clock = project.root().join("clock");
    std::fs::write(&clock, "+0").unwrap();
    std::fs::write(project.root().join("items"), "one\n").unwrap();
    // The first execution sets the clock back by two hours and fails.
    let script = format!("[ $(cat {0}) = -2h ] || {{ echo -2h >{0}; exit 1; }}", clock.display());
    let ordinary = project.command(&[
        "--json",
        "jobs",
        "start",
        "J",
        "--items",
        "items",
        "--retries",
        "1",
        "--backoff",
        "fixed",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let mut command = faketime();
    command.args(["-f", "+0", "env", "-u", "FAKETIME", "FAKETIME_NO_CACHE=1"]);
    command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", clock.display()));
    command.arg(ordinary.get_program()).args(ordinary.get_args()).env_clear().current_dir(project.root());
    for (name, value) in ordinary.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let job = Running::start(command);
    assert!(job.ends_within(Duration::from_mins(1)), "the retry does not come");
    let ended = job.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_skewed(&project);
}
