//! Fenced writes: who was late has lost its say, and what it says changes nothing.

use serde_json::Value;

use crate::harness::Project;

/// What another program could see of the task, and everything that has happened.
fn state(project: &Project, task: &str) -> (Value, Vec<Value>) {
    (project.ok(&["tasks", "show", task])["task"].clone(), project.feed())
}

/// Every way to speak for a lease, by name and by fence.
fn late_words<'a>(task: &'a str, fence: &'a str) -> Vec<Vec<&'a str>> {
    let mut words = Vec::new();
    for credential in [["--agent", "late"], ["--fence", fence]] {
        for mut verb in [
            vec!["tasks", "done", task],
            vec!["tasks", "renew", task],
            vec!["tasks", "release", task],
            vec!["tasks", "fail", task, "-m", "too late"],
        ] {
            verb.extend(credential);
            words.push(verb);
        }
    }
    words
}

/// `late` claims for a second and lets it run out. Gives its fence.
fn lapse(project: &Project, task: &str) -> String {
    let lease = &project.ok(&["tasks", "claim", task, "--agent", "late", "--ttl", "1s"])["lease"];
    let fence = lease["fence"].to_string();
    project.wait_until_expired(task);
    fence
}

fn refused_without_a_trace(project: &Project, task: &str, fence: &str) {
    let before = state(project, task);
    for word in late_words(task, fence) {
        let answer = project.run(&word);
        assert_eq!(answer.code, Some(8), "{word:?}: {answer:?}");
        assert_eq!(state(project, task), before, "{word:?} changed something");
    }
    let check = project.run(&["tasks", "check", task, "--fence", fence]);
    assert_eq!(check.code, Some(8), "{check:?}");
}

#[test]
fn whoever_was_taken_over_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let fence = lapse(&project, "F1");
    project.ok(&["tasks", "claim", "F1", "--agent", "next"]);
    refused_without_a_trace(&project, "F1", &fence);
    project.ok(&["tasks", "done", "F1", "--agent", "next"]);
}

#[test]
fn whoever_was_taken_over_is_refused_after_the_other_has_finished() {
    let project = Project::new();
    project.add("F", 3);
    for (task, end) in [("F1", "done"), ("F2", "release"), ("F3", "fail")] {
        let fence = lapse(&project, task);
        project.ok(&["tasks", "claim", task, "--agent", "next"]);
        let mut verb = vec!["tasks", end, task, "--agent", "next"];
        if end == "fail" {
            verb.extend(["-m", "broken"]);
        }
        project.ok(&verb);
        refused_without_a_trace(&project, task, &fence);
    }
}

#[test]
fn whoever_was_forced_out_is_refused_and_changes_nothing() {
    let project = Project::new();
    project.add("F", 1);
    let lease = &project.ok(&["tasks", "claim", "F1", "--agent", "late"])["lease"];
    let fence = lease["fence"].to_string();
    project.ok(&["locks", "release", "F1", "--force", "--agent", "boss"]);
    refused_without_a_trace(&project, "F1", &fence);
}

#[test]
fn a_late_renewal_is_refused_even_if_nobody_came() {
    let project = Project::new();
    project.add("F", 1);
    lapse(&project, "F1");
    let before = state(&project, "F1");
    assert_eq!(project.run(&["tasks", "renew", "F1", "--agent", "late"]).code, Some(8));
    assert_eq!(state(&project, "F1"), before);
}

#[test]
fn a_late_finish_counts_if_nobody_came_also_after_the_clean_up_and_only_once() {
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
