//! Fenced writes: a holder that has lost its lease is refused, and its late commands change nothing.

use serde_json::Value;

use crate::harness::Project;

/// The task as another program sees it, and all events.
fn state(project: &Project, task: &str) -> (Value, Vec<Value>) {
    (project.ok(&["tasks", "show", task])["task"].clone(), project.feed())
}

/// Every command that acts under a lease, with the agent's name and with the fence.
fn late_commands<'a>(task: &'a str, fence: &'a str) -> Vec<Vec<&'a str>> {
    let mut commands = Vec::new();
    for credential in [["--agent", "late"], ["--fence", fence]] {
        for mut command in [
            vec!["tasks", "done", task],
            vec!["tasks", "renew", task],
            vec!["tasks", "release", task],
            vec!["tasks", "fail", task, "-m", "too late"],
        ] {
            command.extend(credential);
            commands.push(command);
        }
    }
    commands
}

/// Lets `late` claim the task for a second and waits until the lease has expired. Returns its fence.
fn lapse(project: &Project, task: &str) -> String {
    let lease = &project.ok(&["tasks", "claim", task, "--agent", "late", "--ttl", "1s"])["lease"];
    let fence = lease["fence"].to_string();
    project.wait_until_expired(task);
    fence
}

fn assert_refused_without_changes(project: &Project, task: &str, fence: &str) {
    let before = state(project, task);
    for command in late_commands(task, fence) {
        let answer = project.run(&command);
        assert_eq!(answer.code, Some(8), "{command:?}: {answer:?}");
        assert_eq!(state(project, task), before, "{command:?} changed something");
    }
    let check = project.run(&["tasks", "check", task, "--fence", fence]);
    assert_eq!(check.code, Some(8), "{check:?}");
}

#[test]
fn a_holder_that_was_taken_over_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let fence = lapse(&project, "F1");
    project.ok(&["tasks", "claim", "F1", "--agent", "next"]);
    assert_refused_without_changes(&project, "F1", &fence);
    project.ok(&["tasks", "done", "F1", "--agent", "next"]);
}

#[test]
fn a_holder_that_was_taken_over_is_refused_after_its_successor_has_finished() {
    let project = Project::new();
    project.add("F", 3);
    for (task, end) in [("F1", "done"), ("F2", "release"), ("F3", "fail")] {
        let fence = lapse(&project, task);
        project.ok(&["tasks", "claim", task, "--agent", "next"]);
        let mut command = vec!["tasks", end, task, "--agent", "next"];
        if end == "fail" {
            command.extend(["-m", "broken"]);
        }
        project.ok(&command);
        assert_refused_without_changes(&project, task, &fence);
    }
}

#[test]
fn an_evicted_holder_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let lease = &project.ok(&["tasks", "claim", "F1", "--agent", "late"])["lease"];
    let fence = lease["fence"].to_string();
    project.ok(&["locks", "release", "F1", "--force", "--agent", "boss"]);
    assert_refused_without_changes(&project, "F1", &fence);
}

#[test]
fn a_late_renewal_is_refused_even_without_a_takeover() {
    let project = Project::new();
    project.add("F", 1);
    lapse(&project, "F1");
    let before = state(&project, "F1");
    assert_eq!(project.run(&["tasks", "renew", "F1", "--agent", "late"]).code, Some(8));
    assert_eq!(state(&project, "F1"), before);
}

#[test]
fn a_late_finish_without_a_takeover_counts_once_even_after_a_cleanup() {
    let project = Project::new();
    project.add("F", 2);
    for (task, cleaned) in [("F1", false), ("F2", true)] {
        let fence = lapse(&project, task);
        if cleaned {
            project.ok(&["locks", "cleanup"]);
        }
        assert_eq!(project.ok(&["tasks", "done", task, "--fence", &fence])["changed"], true);
        let before = state(&project, task);
        assert_eq!(before.0["status"], "completed");
        assert_eq!(project.ok(&["tasks", "done", task, "--fence", &fence])["changed"], false);
        assert_eq!(state(&project, task), before);
    }
}
