//! When a command may start.

use rustix::process::Signal;
use tenure_testkit::cli::processes;

use crate::project::{Project, end, finish};

#[test]
fn a_second_process_of_the_same_agent_cannot_run_the_task() {
    let project = Project::new();
    let _first = project.start("a", &[], "echo $$ > pid; sleep 120");
    let pid = project.wait_for_pids("pid", 1)[0];
    assert_eq!(project.code(&["tasks", "run", "T", "--agent", "a", "--", "touch", "second"]), 6);
    // Refused even with the fence, because the lease belongs to the running process.
    let fence = project.lock()["fence"].to_string();
    assert_eq!(
        project.code(&["tasks", "run", "T", "--agent", "a", "--fence", &fence, "--", "touch", "second"]),
        6
    );
    assert!(!project.path("second").exists());
    assert!(processes::is_alive(pid));
}

#[test]
fn tasks_run_continues_a_claim_of_the_same_agent() {
    let project = Project::new();
    project.ok(&["task", "claim", "T", "--agent", "a"]);
    assert_eq!(project.code(&["tasks", "run", "T", "--agent", "b", "--", "true"]), 6);
    assert_eq!(project.code(&["tasks", "run", "T", "--agent", "a", "--", "true"]), 0);
    assert_eq!(project.status(), "completed");
}

#[test]
fn a_caller_without_a_name_joins_as_a_new_agent() {
    let project = Project::new();
    let answer = project.json(&["tasks", "run", "T", "--", "true"]);
    let holder = &answer["data"]["lease"]["holder"];
    assert_eq!(holder["kind"], "agent");
    assert!(holder["id"].as_str().unwrap().starts_with('A'));
}

#[test]
fn a_command_does_not_start_under_an_attempt_that_has_ended() {
    let project = Project::new();
    assert_eq!(project.code(&["tasks", "run", "T", "--", "sh", "-c", "echo $TENURE_ATTEMPT > mark"]), 0);
    let mut late = project.command(&["start-attempt", "--", "touch", "ran"]);
    late.env("TENURE_ATTEMPT", project.read("mark").trim());
    late.env("TENURE_ATTEMPT_STORE", project.path(".tenure/tenure.db"));
    assert_eq!(finish(late).status.code(), Some(8));
    assert!(!project.path("ran").exists());
}

#[test]
fn a_command_does_not_start_under_an_attempt_that_is_ending_or_whose_supervisor_died() {
    for kill in [false, true] {
        let project = Project::new();
        let first = project.start("a", &[], "echo $TENURE_ATTEMPT > mark; touch up; sleep 120");
        project.wait_for_file("up");
        if kill {
            // No process has noticed the death yet, so the attempt's row is still `running`.
            first.signal(Signal::KILL);
            assert_eq!(end(first).0, 137);
        } else {
            first.signal(Signal::STOP);
            project.ok(&["tasks", "skip", "T", "--force", "--agent", "boss"]);
        }
        let mut late = project.command(&["start-attempt", "--", "touch", "ran"]);
        late.env("TENURE_ATTEMPT", project.read("mark").trim());
        late.env("TENURE_ATTEMPT_STORE", project.path(".tenure/tenure.db"));
        assert_eq!(finish(late).status.code(), Some(8), "killed: {kill}");
        assert!(!project.path("ran").exists());
    }
}

#[test]
fn tasks_run_refuses_a_dry_run() {
    let project = Project::new();
    assert_eq!(project.code(&["tasks", "run", "T", "--dry-run", "--", "touch", "ran"]), 2);
    assert!(!project.path("ran").exists());
}
