//! One runner per slot (R1), enforced by the store and not by a check beforehand.

use tenure_testkit::cli::{Running, full_or, until};

use crate::project::Project;

#[test]
fn of_eight_concurrent_starts_exactly_one_runs_and_the_others_name_it() {
    for round in 0..full_or(50, 10) {
        let project = Project::new();
        let gate = project.hold_writers();
        let starters: Vec<Running> =
            (0..8).map(|_| project.spawn(&["--json", "runners", "start", "--idle-timeout", "10m"])).collect();
        drop(gate);
        let answers: Vec<_> = starters.into_iter().map(Running::end).collect();
        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.code == Some(0));
        assert_eq!(won.len(), 1, "round {round}: {answers:#?}");
        let runner = won[0].json()["data"]["runner"].clone();
        for refused in lost {
            let error = refused.json()["error"].clone();
            assert_eq!((refused.code, error["code"].as_str()), (Some(6), Some("RUNNER_ACTIVE")), "{error}");
            assert_eq!(error["details"]["lockedBy"], runner["id"], "round {round}: {error}");
            let words = error["message"].as_str().unwrap();
            assert!(words.starts_with("this project has a runner already: "), "{words}");
            assert!(words.contains(&format!("(pid {} on ", runner["pid"])), "{words}");
        }
        let listed = project.ok(&["runners", "list"]);
        assert_eq!(listed["total"], 1, "round {round}: {listed}");
        let seen = project.ok(&["status"])["runners"].clone();
        assert_eq!((seen[0]["id"].clone(), seen.as_array().unwrap().len()), (runner["id"].clone(), 1));
        project.ok(&["runners", "stop"]);
    }
}

#[test]
fn with_two_slots_a_second_runner_starts_and_a_third_is_refused() {
    let project = Project::with("runners: {preset: pretend, maxConcurrent: 2, killGrace: 300ms}");
    let first = project.runner(&["--idle-timeout", "10m"]);
    let second = project.runner(&["--idle-timeout", "10m"]);
    let third = project.run(&["runners", "start"]);
    assert_eq!(third.code, Some(6), "{third:?}");
    assert!(third.err.contains("all 2 runners of this project are running, among them "), "{third:?}");
    project.ok(&["runners", "stop"]);
    assert_eq!((first.end().code, second.end().code), (Some(0), Some(0)));
    let fourth = project.work(&[]);
    assert_eq!(fourth.code, Some(0), "{fourth:?}");
}

#[test]
fn a_runner_works_without_the_directory_of_runners() {
    let project = Project::new();
    project.task("A", &[]);
    let home = project.tenure_home();
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::write(&home, "not a folder").unwrap();
    let ran = project.work(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    std::fs::remove_file(&home).unwrap();
    assert_eq!(project.status("A"), "completed");
}

#[test]
fn a_detached_runner_inherits_nothing_from_its_caller_and_continues() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let started = project.ok(&["runners", "start"]);
    project.wait_for("begun");
    let pid = started["runner"]["pid"].as_u64().unwrap();
    for fd in 0..3 {
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
        assert_eq!(link.to_string_lossy(), "/dev/null");
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string(), "it leads its own session");
    project.give("go");
    project.wait_until("A", "completed");
    until("it has ended", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    let logs = project.ok(&["runners", "logs"]);
    let lines: Vec<&str> =
        logs["lines"].as_array().unwrap().iter().map(|l| l["line"].as_str().unwrap()).collect();
    assert!(lines.iter().all(|line| line.starts_with("[20")), "every line has its time: {lines:?}");
    assert!(lines.iter().any(|line| line.ends_with("Runner ended")), "{lines:?}");
}
