//! Items that fail are retried after a pause, and then become dead letters with their logs.

use std::time::Duration;

use tenure_testkit::cli::until;

use crate::project::Project;

#[test]
fn every_item_is_run_once_and_its_output_is_in_its_log() {
    let p = Project::new();
    p.numbers("items.txt", 9);
    p.script("echo.sh", "echo \"$1\" >>\"$PRETEND/ran\"; echo \"this is $1\"");
    let answer = p.start(&["--parallel", "3", "--", "./echo.sh", "{item}"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let job = &answer.json()["data"]["job"];
    assert_eq!((job["status"].as_str(), job["succeeded"].as_u64()), (Some("completed"), Some(9)));
    let mut ran = p.marks("ran");
    ran.sort();
    assert_eq!(ran, (1..=9).map(|n| n.to_string()).collect::<Vec<_>>());
    let item = p.ok(&["jobs", "show", "a", "--item", "7"])["item"].clone();
    let log = std::fs::read_to_string(item["logPath"].as_str().unwrap()).unwrap();
    assert!(log.contains("this is 7"), "{log}");
    assert_eq!(item["history"][0]["exitCode"], 0);
    assert_eq!(p.successes(), (1..=9).collect::<Vec<_>>());
    assert!(p.locks().is_empty());
    assert_eq!(p.run(&["resume", "a"]).code, Some(0), "resuming a finished job succeeds");
    assert_eq!(p.marks("ran").len(), 9, "no item is repeated");
}

#[test]
fn a_failing_item_is_retried_after_a_pause_and_then_becomes_a_dead_letter() {
    let p = Project::new();
    p.numbers("items.txt", 3);
    p.script("fail.sh", "echo \"$1\" >>\"$PRETEND/ran\"; echo \"no $1\" >&2; test \"$1\" != 2");
    let answer = p.start(&["--retries", "2", "--", "./fail.sh", "{item}"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let job = answer.json()["data"]["job"].clone();
    assert_eq!(
        (job["status"].as_str(), job["succeeded"].as_u64(), job["failed"].as_u64()),
        (Some("failed"), Some(2), Some(1))
    );
    assert_eq!(p.marks("ran").iter().filter(|n| *n == "2").count(), 3, "once, and two retries");
    assert_eq!(p.successes(), [1, 3]);
    let letter = &job["deadLetter"][0];
    assert_eq!((letter["item"].as_u64(), letter["failures"].as_u64()), (Some(2), Some(3)));
    assert_eq!(letter["error"], "exited with 1: no 2");
    assert!(std::fs::read_to_string(letter["logPath"].as_str().unwrap()).unwrap().contains("no 2"));
    // Newest first, with at least the configured pause between two attempts.
    let started: Vec<_> = letter["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| tenure_core::Timestamp::parse(attempt["startedAt"].as_str().unwrap()).unwrap())
        .collect();
    assert!(started[1].since(started[2]) >= Duration::from_secs(1), "{started:?}");
    assert!(started[0].since(started[1]) >= Duration::from_secs(2), "{started:?}");
}

#[test]
fn the_time_of_the_next_retry_survives_the_coordinator() {
    let p = Project::new();
    p.numbers("items.txt", 1);
    p.script("fail.sh", "echo x >>\"$PRETEND/ran\"; exit 1");
    let args = ["jobs", "start", "a", "--items", "items.txt", "--retries", "9", "--", "./fail.sh"];
    let running = p.spawn(&args);
    until("it has failed twice", || p.marks("ran").len() == 2);
    let due = || p.ok(&["jobs", "show", "a", "--item", "1"])["item"].clone();
    until("the failure is recorded", || due()["failures"] == 2);
    running.signal(rustix::process::Signal::KILL);
    running.end();
    let item = due();
    assert_eq!(item["state"], "pending");
    let resumed = p.spawn(&["resume", "a"]);
    until("it is tried again", || p.marks("ran").len() == 3);
    let begun = due()["history"][0]["startedAt"].as_str().unwrap().to_owned();
    assert!(begun.as_str() >= item["dueAt"].as_str().unwrap(), "{begun} {item}");
    resumed.signal(rustix::process::Signal::TERM);
    assert_eq!(resumed.end().code, Some(143));
}

#[test]
fn retrying_dead_letters_runs_only_those() {
    let p = Project::new();
    p.numbers("items.txt", 4);
    p.script("gate.sh", "echo \"$1\" >>\"$PRETEND/ran\"; test \"$1\" -gt 2 || test -e \"$PRETEND/go\"");
    let args = ["jobs", "start", "a", "--items", "items.txt", "--retries", "0", "--", "./gate.sh", "{item}"];
    assert_eq!(p.run(&args).code, Some(1));
    assert_eq!(p.run(&["resume", "a"]).code, Some(0), "the job is finished, with dead letters");
    assert_eq!(p.marks("ran").len(), 4);
    assert_eq!(p.run(&["jobs", "retry", "a"]).code, Some(1), "they fail again");
    p.give("go");
    let answer = p.run(&["--json", "resume", "a", "--retry-failed"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["data"]["job"]["status"], "completed");
    assert_eq!(p.successes(), [1, 2, 3, 4]);
    let ran = p.marks("ran");
    assert_eq!(ran.iter().filter(|n| ["3", "4"].contains(&n.as_str())).count(), 2, "{ran:?}");
}

#[test]
fn an_item_that_exceeds_its_timeout_is_killed_with_its_processes_and_fails() {
    let p = Project::new();
    p.numbers("items.txt", 1);
    p.script("slow.sh", "sleep 1000 & sleep 1000");
    let answer = p.start(&["--retries", "0", "--item-timeout", "300ms", "--", "./slow.sh"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(answer.json()["data"]["job"]["deadLetter"][0]["error"], "not finished after 300ms");
    p.expect_no_agents();
}

#[test]
fn on_failure_stops_the_job_or_skips_the_item() {
    for (on_failure, code, status, ran) in [("stop", 1, "failed", 2), ("skip", 0, "completed", 4)] {
        let p = Project::new();
        p.numbers("items.txt", 4);
        p.script("fail.sh", "echo \"$1\" >>\"$PRETEND/ran\"; test \"$1\" != 2");
        let answer = p.start(&["--retries", "0", "--on-failure", on_failure, "--", "./fail.sh", "{item}"]);
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_eq!(answer.json()["data"]["job"]["status"], status);
        assert_eq!(p.marks("ran").len(), ran, "{on_failure}");
        if on_failure == "stop" {
            assert_eq!(
                p.run(&["resume", "a"]).code,
                Some(1),
                "the remaining items run; the dead letter stays"
            );
            assert_eq!((p.marks("ran").len(), p.successes()), (4, vec![1, 3, 4]));
        }
    }
}

#[test]
fn a_command_that_does_not_exist_stops_the_job_and_costs_no_item_a_try() {
    let p = Project::new();
    p.numbers("items.txt", 3);
    let answer = p.start(&["--", "./nowhere.sh", "{item}"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let why = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(why.starts_with("cannot run ./nowhere.sh: No such file"), "{why}");
    let job = p.job("a");
    assert_eq!((job["status"].as_str(), job["failed"].as_u64()), (Some("interrupted"), Some(0)), "{job}");
    p.script("nowhere.sh", "exit 0");
    p.ok(&["resume", "a"]);
    assert_eq!(p.successes(), [1, 2, 3]);
}

#[test]
fn a_program_that_only_one_item_names_fails_only_that_item() {
    let p = Project::new();
    p.script("here.sh", "exit 0");
    p.items("items.txt", ["./nowhere.sh", "./here.sh"].map(str::to_owned));
    let answer = p.start(&["--retries", "0", "--", "{item}"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let why = answer.json()["data"]["job"]["deadLetter"][0]["error"].as_str().unwrap().to_owned();
    assert!(why.starts_with("cannot run ./nowhere.sh: No such file"), "{why}");
    assert_eq!(p.successes(), [2]);
}
