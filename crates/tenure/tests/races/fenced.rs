//! Fenced writes: a holder that has lost its lease is refused, and its late commands change nothing.

use serde_json::Value;

use crate::harness::Project;

/// The task as another program sees it, and all events but the records of refused writes, which change nothing else.
fn state(project: &Project, task: &str) -> (Value, Vec<Value>) {
    let mut events = project.feed();
    events.retain(|event| event["kind"] != "write.rejected");
    (project.ok(&["tasks", "show", task])["task"].clone(), events)
}

/// The credentials that `late` got with its lease.
struct Late {
    fence: String,
    proof: String,
}

impl Late {
    fn of(lease: &Value) -> Self {
        let text = |name: &str| lease[name].as_str().unwrap();
        Self { fence: lease["fence"].to_string(), proof: format!("{}-{}", text("leaseId"), text("leaseKey")) }
    }
}

/// Every command that acts under a lease, with the agent's name, with the fence, and with the key.
fn late_commands<'a>(task: &'a str, late: &'a Late) -> Vec<Vec<&'a str>> {
    let mut commands = Vec::new();
    let credentials: [&[&str]; 3] =
        [&["--agent", "late"], &["--agent", "late", "--fence", &late.fence], &["--lease", &late.proof]];
    for credential in credentials {
        for mut command in [
            vec!["tasks", "done", task],
            vec!["tasks", "renew", task],
            vec!["tasks", "release", task],
            vec!["tasks", "fail", task, "-m", "too late"],
            vec!["tasks", "check", task],
        ] {
            command.extend(credential);
            commands.push(command);
        }
    }
    commands
}

/// Lets `late` claim the task for a second and waits until the lease has expired.
fn lapse(project: &Project, task: &str) -> Late {
    let lease = &project.ok(&["tasks", "claim", task, "--agent", "late", "--ttl", "1s"])["lease"];
    let late = Late::of(lease);
    project.wait_until_expired(task);
    late
}

fn assert_refused_without_changes(project: &Project, task: &str, late: &Late) {
    let before = state(project, task);
    for command in late_commands(task, late) {
        let answer = project.run(&command);
        assert_eq!(answer.code, Some(8), "{command:?}: {answer:?}");
        assert_eq!(state(project, task), before, "{command:?} changed something");
    }
    assert_eq!(recorded(project, &late.fence), ["late"], "they are recorded once");
}

/// The actors of the events that record late writes under this fence.
fn recorded(project: &Project, fence: &str) -> Vec<String> {
    let mut events = project.feed();
    let fence: i64 = fence.parse().unwrap();
    events.retain(|event| event["kind"] == "write.rejected" && event["fence"] == fence);
    events.iter().map(|event| event["actor"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_fence_that_a_refusal_prints_does_not_open_the_task() {
    let project = Project::new();
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "late"]);
    let refused = project.run(&["--json", "tasks", "claim", "F1", "--agent", "mallory"]).json();
    let details = &refused["error"]["details"];
    let fence = details["fence"].to_string();
    let stolen = format!("{}-{}", details["leaseId"].as_str().unwrap(), "0".repeat(16));
    let before = state(&project, "F1");
    for credential in [["--fence", &fence], ["--lease", &stolen]] {
        for mut command in [
            vec!["tasks", "done", "F1"],
            vec!["tasks", "renew", "F1"],
            vec!["tasks", "release", "F1"],
            vec!["tasks", "fail", "F1", "-m", "no"],
            vec!["tasks", "check", "F1"],
        ] {
            command.extend(["--agent", "mallory"]);
            command.extend(credential);
            let answer = project.run(&command);
            assert_eq!(answer.code, Some(8), "{command:?}: {answer:?}");
        }
    }
    for verb in [&["skip"][..], &["approve"], &["delete"], &["update", "--status", "completed"]] {
        let command =
            [&["tasks", verb[0], "F1", "--agent", "mallory", "--fence", &fence], &verb[1..]].concat();
        let answer = project.run(&command);
        assert_eq!(answer.code, Some(6), "{command:?}: {answer:?}");
    }
    assert_eq!(state(&project, "F1"), before);
    let seen = format!("{} {:?}", project.ok(&["locks", "list"]), project.feed());
    assert!(!seen.contains("leaseKey") && !refused.to_string().contains("leaseKey"));
}

#[test]
fn a_late_write_after_a_persons_decision_is_refused() {
    let project = Project::new();
    project.add("F", 4);
    for (task, cleaned) in [("F1", false), ("F2", true)] {
        let late = lapse(&project, task);
        if cleaned {
            project.ok(&["locks", "cleanup"]);
        }
        project.ok(&["tasks", "skip", task]);
        project.ok(&["tasks", "update", task, "--title", "Another title"]);
        project.ok(&["tasks", "retry", task]);
        assert_refused_without_changes(&project, task, &late);
    }
    let late = lapse(&project, "F3");
    project.ok(&["tasks", "update", "F3", "--status", "pending"]);
    assert_refused_without_changes(&project, "F3", &late);
    let late = lapse(&project, "F4");
    for words in
        [&["update", "F4", "--status", "review"][..], &["approve", "F4"], &["reject", "F4", "-m", "no"]]
    {
        project.ok(&[&["tasks"], words].concat());
    }
    assert_refused_without_changes(&project, "F4", &late);
}

#[test]
fn a_holder_that_was_taken_over_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let late = lapse(&project, "F1");
    project.ok(&["tasks", "claim", "F1", "--agent", "next"]);
    assert_refused_without_changes(&project, "F1", &late);
    project.ok(&["tasks", "done", "F1", "--agent", "next"]);
}

#[test]
fn a_holder_that_was_taken_over_is_refused_after_its_successor_has_finished() {
    let project = Project::new();
    project.add("F", 3);
    for (task, end) in [("F1", "done"), ("F2", "release"), ("F3", "fail")] {
        let late = lapse(&project, task);
        project.ok(&["tasks", "claim", task, "--agent", "next"]);
        let mut command = vec!["tasks", end, task, "--agent", "next"];
        if end == "fail" {
            command.extend(["-m", "broken"]);
        }
        project.ok(&command);
        assert_refused_without_changes(&project, task, &late);
    }
}

#[test]
fn an_evicted_holder_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let late = Late::of(&project.ok(&["tasks", "claim", "F1", "--agent", "late"])["lease"]);
    project.ok(&["locks", "release", "F1", "--force", "--agent", "boss"]);
    assert_refused_without_changes(&project, "F1", &late);
}

#[test]
fn a_late_renewal_is_refused_even_without_a_takeover() {
    let project = Project::new();
    project.add("F", 1);
    let late = lapse(&project, "F1");
    let before = state(&project, "F1");
    for _ in 0..2 {
        assert_eq!(project.run(&["tasks", "renew", "F1", "--agent", "late"]).code, Some(8));
    }
    assert_eq!(state(&project, "F1"), before);
    assert_eq!(recorded(&project, &late.fence), ["late"]);
}

#[test]
fn a_late_finish_without_a_takeover_counts_once_even_after_a_cleanup() {
    let project = Project::new();
    project.add("F", 2);
    for (task, cleaned) in [("F1", false), ("F2", true)] {
        let late = lapse(&project, task);
        if cleaned {
            project.ok(&["locks", "cleanup"]);
        }
        assert_eq!(project.ok(&["tasks", "done", task, "--lease", &late.proof])["changed"], true);
        let before = state(&project, task);
        assert_eq!(before.0["status"], "completed");
        assert_eq!(project.ok(&["tasks", "done", task, "--lease", &late.proof])["changed"], false);
        assert_eq!(state(&project, task), before);
    }
}
