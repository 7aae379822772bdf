//! What the end of a command means for its task.

use rustix::process::Signal;
use tenure_testkit::cli::processes;

use crate::project::{Project, end, wait_for};

fn run(project: &Project, script: &str) -> i32 {
    project.code(&["tasks", "run", "T", "--agent", "a", "--", "sh", "-c", script])
}

#[test]
fn exit_code_0_completes_the_task() {
    let project = Project::new();
    assert_eq!(run(&project, "exit 0"), 0);
    assert_eq!(project.status(), "completed");
    assert!(project.lock().is_null());
}

#[test]
fn any_other_exit_code_fails_the_task_and_is_passed_on() {
    let project = Project::new();
    assert_eq!(run(&project, "exit 3"), 3);
    assert_eq!((project.status().as_str(), project.attempts()), ("failed", 0));
}

#[test]
fn a_death_by_a_foreign_signal_is_charged_and_the_third_one_fails_the_task() {
    let project = Project::new();
    for attempt in 1..=2 {
        assert_eq!(run(&project, "kill -KILL $$"), 137);
        assert_eq!((project.status().as_str(), project.attempts()), ("pending", attempt));
    }
    assert_eq!(run(&project, "kill -SEGV $$"), 139);
    assert_eq!((project.status().as_str(), project.attempts()), ("failed", 3));
}

#[test]
fn what_the_command_reports_itself_overrides_its_exit_code() {
    for (verb, code, status, charged) in [
        ("done T", 4, "completed", 0),
        ("fail T -m why", 0, "failed", 0),
        ("release T", 0, "pending", 1),
        ("release T", 5, "pending", 1),
    ] {
        let project = Project::new();
        assert_eq!(run(&project, &format!("tenure task {verb} || exit 99; exit {code}")), code, "{verb}");
        assert_eq!((project.status().as_str(), project.attempts()), (status, charged), "{verb}");
        let open = project.json(&["events"])["data"].to_string();
        assert!(open.contains("attempt.ended"), "{open}");
    }
}

#[test]
fn the_command_finds_the_lease_in_its_environment() {
    let project = Project::new();
    assert_eq!(run(&project, "env > seen; tenure task check T"), 0);
    let seen = project.read("seen");
    let value = |name: &str| {
        let line = seen.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name} in {seen}")).to_owned()
    };
    assert_eq!(value("TENURE_AGENT"), "a");
    assert_eq!(value("TENURE_TASK_ID"), project.task()["id"]);
    assert_eq!(value("TENURE_PROJECT"), project.path("").to_string_lossy().trim_end_matches('/'));
    assert_eq!(value("TENURE_FENCE"), "1");
    let proof = value("TENURE_LEASE");
    let lease = project.json(&["locks", "show", "T", "--history"])["data"]["history"][0]["leaseId"].clone();
    let key = proof.strip_prefix(&format!("{}-", lease.as_str().unwrap())).unwrap();
    assert_eq!(key.len(), 16, "{proof}");
    assert!(!value("TENURE_ATTEMPT").is_empty());
}

#[test]
fn sigterm_and_sigint_release_the_task_after_the_command_has_cleaned_up() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let project = Project::new();
        // A shell that starts it in the background would make it ignore SIGINT; this one does not.
        let running = project.start(
            "a",
            &[],
            "trap 'echo tidy > tidy; exit 0' TERM INT; echo $$ > pid; while :; do sleep 0.1; done",
        );
        let pid = project.wait_for_pids("pid", 1)[0];
        running.signal(signal);
        let (exit, said) = end(running);
        assert_eq!(exit, code, "{said}");
        assert!(!processes::is_alive(pid));
        assert_eq!(project.read("tidy"), "tidy\n");
        assert_eq!((project.status().as_str(), project.attempts()), ("pending", 0));
        assert!(project.lock().is_null());
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let project = Project::new();
    project.configure("runners: {killGrace: 1s}");
    let running = project.start("a", &[], "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done");
    let pid = project.wait_for_pids("pid", 1)[0];
    running.signal(Signal::TERM);
    assert_eq!(end(running).0, 143);
    assert!(!processes::is_alive(pid));
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 0));
}

#[test]
fn a_command_that_cannot_be_started_is_charged_and_exits_as_a_shell_would() {
    let project = Project::new();
    assert_eq!(project.code(&["tasks", "run", "T", "--agent", "a", "--", "no-such-command"]), 127);
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 1));
    std::fs::write(project.path("plain"), "text").unwrap();
    let output = project.run(&["tasks", "run", "T", "--agent", "a", "--", "./plain"]);
    assert_eq!(output.status.code(), Some(126));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Error: cannot run ./plain: Permission denied; T is pending\n"), "{said}");
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 2));
}

#[test]
fn processes_that_the_command_leaves_behind_are_reaped() {
    let project = Project::with_own_programs();
    project.configure("runners: {killGrace: 1s}");
    let script = "sh -c 'trap \"\" TERM; echo $$ >> left; while :; do sleep 1; done' &
                  setsid sh -c 'echo $$ >> left; sleep 120' &
                  env -i sh -c 'echo $$ >> left; sleep 120' &
                  while [ \"$(wc -l < left)\" != 3 ]; do sleep 0.05; done";
    assert_eq!(run(&project, script), 0);
    let left = project.pids("left");
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|pid| !processes::is_alive(*pid)), "some of {left:?} live");
    assert_eq!(project.status(), "completed");
}

#[test]
fn with_json_the_commands_output_goes_to_standard_error() {
    let project = Project::new();
    let output = project.run(&["tasks", "run", "T", "--json", "--", "echo", "from the command"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["data"]["task"]["status"], "completed");
    assert_eq!(answer["data"]["exitCode"], 0);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "from the command\n", "tenure adds nothing to it");
    let project = Project::new();
    let output = project.run(&["tasks", "run", "T", "--json", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"]["code"], "AGENT_FAILED");
}

#[test]
fn the_lease_is_renewed_while_the_command_lives() {
    let project = Project::new();
    let running = project.start("a", &["--ttl", "1s"], "while [ ! -e stop ]; do sleep 0.05; done");
    wait_for("a heartbeat", || {
        let lock = project.lock();
        let ms = |field: &str| {
            let text = lock[field].as_str().unwrap_or("1970-01-01T00:00:00Z");
            tenure_core::Timestamp::parse(text).unwrap().as_millis()
        };
        ms("heartbeatAt") - ms("acquiredAt") > 1500
    });
    assert_eq!(project.code(&["task", "claim", "T", "--agent", "b"]), 6);
    std::fs::write(project.path("stop"), "").unwrap();
    assert_eq!(end(running).0, 0);
    assert_eq!(project.status(), "completed");
}
