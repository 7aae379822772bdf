//! A password is in nobody's list of processes.

use rustix::process::Signal;

use tenure_testkit::cli::until;

use crate::harness::Project;

const PASSWORD: &str = "s3cret-of-this-test";

/// The command lines of all processes that anybody on this machine may see.
fn command_lines() -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

#[test]
fn a_password_is_in_no_command_line_of_what_works_waits_or_keeps() {
    let mut project = Project::with_config("locking: {pollInterval: 1s}");
    project.store_variable =
        project.store_variable.take().map(|url| url.replace("tenure@", &format!("tenure:{PASSWORD}@")));
    project.add("F", 2);
    let begun = project.root().join("begun");
    let script = "touch begun; sleep 60";
    let worker = project.spawn(&["tasks", "run", "F1", "--agent", "ann", "--", "sh", "-c", script]);
    until("the command runs", || begun.exists());
    let me = std::process::id().to_string();
    project.ok(&["tasks", "claim", "F2", "--agent", "bob", "--while-pid", &me]);
    let waiter = project.spawn(&["tasks", "claim", "F1", "--agent", "cid", "--wait"]);
    project.wait_for_queue("F1", 1);
    let lines = command_lines();
    let seen = |what: &str| lines.iter().any(|line| line.contains("tenure") && line.contains(what));
    assert!(seen("tasks run F1") && seen("claim F1 --agent cid") && seen("keep"), "{lines:#?}");
    let told: Vec<&String> = lines.iter().filter(|line| line.contains(PASSWORD)).collect();
    assert!(told.is_empty(), "{told:#?}");
    for running in [waiter, worker] {
        running.signal(Signal::TERM);
        running.end();
    }
    project.ok(&["tasks", "release", "F2", "--agent", "bob"]);
}
