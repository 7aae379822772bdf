//! Agents are started only in a project that a person has trusted, and only as it was then.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{Answer, processes, until, write_program};

use crate::project::Project;

const START: [&str; 3] = ["runners", "start", "--foreground"];

/// Edits the configuration by hand.
fn edit(project: &Project, from: &str, to: &str) {
    let path = project.root().join(".tenure/config.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

fn code(answer: &Answer) -> (Option<i32>, Value) {
    (answer.code, answer.json()["error"]["code"].clone())
}

#[test]
fn runners_start_at_a_terminal_shows_what_has_changed_and_asks() {
    let project = Project::new();
    project.task("A", &["mark begun"]);
    edit(&project, "killGrace: 300ms", "killGrace: 300ms, maxConcurrent: 2");
    let refused = project.run_distrusting(&[&["--json"], &START as &[&str]].concat());
    assert_eq!(code(&refused), (Some(5), "UNTRUSTED".into()), "{refused:?}");

    let no = project.run_at_a_terminal(&START, "n\n");
    assert_eq!(no.code, Some(5), "{no:?}");
    assert!(no.out.contains("+ runners.maxConcurrent: 2") && no.out.contains("[y/N]"), "{no:?}");
    assert!(!no.out.contains("+ runners.preset"), "what was trusted is not new: {no:?}");
    assert!(!project.shared("begun").exists());

    let yes = project.run_at_a_terminal(&START, "y\n");
    assert_eq!(yes.code, Some(0), "{yes:?}");
    project.wait_until("A", "completed");
    project.task("B", &[]);
    let again = project.run_distrusting(&START);
    assert_eq!(again.code, Some(0), "it is not asked again: {again:?}");
    project.wait_until("B", "completed");
}

#[test]
fn the_variable_lets_a_runner_start_and_its_agents_do_not_get_it() {
    let project = Project::new();
    project.task("A", &["journal trust=[$TENURE_TRUST]", "tenure task done A"]);
    project.ok(&["untrust"]);
    assert_eq!(project.run_distrusting(&START).code, Some(5));
    let mut command = project.command(&["--json", "trust", "--show"]);
    command.env_remove("TENURE_TRUST");
    let hash = tenure_testkit::cli::Running::start(command).end().data()["trust"]["hash"].clone();
    let mut start = project.command(&START);
    start.env("TENURE_TRUST", hash.as_str().unwrap());
    let ran = tenure_testkit::cli::Running::start(start).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let journal = project.marks("journal");
    assert!(journal.iter().any(|line| line.ends_with("trust=[]")), "{journal:?}");
}

#[test]
fn a_script_that_an_agent_has_changed_is_not_run_and_no_other_agent_is_started() {
    let project = Project::new();
    let calls = project.root().join("calls");
    write_program(&project.root().join("note.sh"), "#!/bin/sh\necho \"$TENURE_EVENT\" >> calls\n");
    project.configure(
        "hooks:\n  - {name: started, event: runner.started, type: script, command: ./note.sh}\n  \
         - {name: done, event: task.completed, type: script, command: ./note.sh}",
    );
    project.task("A", &["wait go", "write note.sh echo evil >> calls"]);
    project.task("B", &["mark second"]);
    let mut start = project.command(&START);
    start.env_remove("TENURE_TRUST");
    let runner = tenure_testkit::cli::Running::start(start);
    until("the first hook has run", || std::fs::read_to_string(&calls).is_ok_and(|text| !text.is_empty()));
    project.give("go");
    let ended = runner.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("has changed") || ended.out.contains("has changed"), "{ended:?}");
    assert_eq!((project.status("A").as_str(), project.status("B").as_str()), ("completed", "pending"));
    assert!(!project.shared("second").exists());
    assert_eq!(
        std::fs::read_to_string(&calls).unwrap(),
        "runner.started\n",
        "the changed script was not run"
    );
}

#[test]
fn resuming_a_session_needs_trust_like_starting_one() {
    let project = Project::new();
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.detached_runner(&[]);
    project.wait_for("begun");
    processes::signal(pid, Signal::KILL);
    until("the runner is dead", || !processes::is_alive(pid));
    let id = project.ok(&["sessions", "list"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    edit(&project, "killGrace: 300ms", "killGrace: 300ms, maxConcurrent: 2");
    // On a server the store itself needs trust.
    for more in [&[] as &[&str], &["--detach"]] {
        let refused = project.run_distrusting(&[&["--json", "resume", &id], more].concat());
        assert_eq!(code(&refused), (Some(5), "UNTRUSTED".into()), "{refused:?}");
    }
    if project.server().is_none() {
        let no = project.run_at_a_terminal(&["resume", &id, "--detach"], "n\n");
        assert_eq!(no.code, Some(5), "{no:?}");
        assert!(no.out.contains("+ runners.maxConcurrent: 2") && no.out.contains("[y/N]"), "{no:?}");
        let yes = project.run_at_a_terminal(&["resume", &id, "--detach", "--accept-changes"], "y\n");
        assert_eq!(yes.code, Some(0), "{yes:?}");
    } else {
        project.trust();
        let resumed = project.run_distrusting(&["resume", &id, "--detach", "--accept-changes"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
    }
    project.give("go");
    project.wait_until("A", "completed");
}
