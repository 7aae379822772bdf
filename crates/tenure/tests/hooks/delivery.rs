//! When hooks run, what they receive, and that they never break the command that triggers them.

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{Answer, Project, Running, Sandbox, processes, until, write_program};

use crate::SUITE;

/// A project `shop` with these hooks, and a script `note.sh` that records each call.
fn project(hooks: &str) -> Project {
    let project = Sandbox::new(SUITE).project("shop");
    script(&project, "note.sh", "echo \"$TENURE_EVENT $*\" >> calls");
    project.configure(&format!("hooks:\n{hooks}"));
    project
}

/// A hook that records `event` and `args`.
fn recording(event: &str, args: &str) -> String {
    format!("  - {{name: {event}, event: {event}, type: script, command: ./note.sh, args: [{args}]}}\n")
}

fn recording_all() -> String {
    let task = r#""{{task.key}}", "{{task.status}}""#;
    let events =
        ["created", "updated", "completed", "failed"].map(|event| recording(&format!("task.{event}"), task));
    events.concat()
        + &recording("section.completed", r#""{{section.name}}""#)
        + &recording("project.completed", r#""{{project.name}}""#)
        + &recording("lease.lost", r#""{{task.key}}", "{{lease.holder.id}}""#)
}

fn script(p: &Project, name: &str, text: &str) {
    write_program(&p.root().join(name), &format!("#!/bin/sh\n{text}\n"));
}

fn read(p: &Project, name: &str) -> String {
    std::fs::read_to_string(p.root().join(name)).unwrap_or_default()
}

/// The recorded calls since the last time.
fn new_calls(p: &Project) -> Vec<String> {
    let lines = read(p, "calls").lines().map(str::to_owned).collect();
    let _ = std::fs::remove_file(p.root().join("calls"));
    lines
}

/// Runs a command with one more variable in its environment.
fn run_with(p: &Project, variables: &[(&str, &str)], args: &[&str]) -> Answer {
    let mut command = p.command(args);
    command.envs(variables.iter().copied());
    Running::start(command).end()
}

/// The last run of the only hook.
fn last_run(p: &Project) -> Value {
    p.ok(&["hooks", "list"])["hooks"][0]["last"].clone()
}

#[track_caller]
fn assert_reports(p: &Project, args: &str, expected: &[&str]) {
    let args: Vec<&str> = args.split(' ').collect();
    p.ok(&args);
    assert_eq!(new_calls(p), expected, "{args:?}");
}

#[test]
fn every_command_triggers_exactly_the_hooks_of_what_it_changed() {
    let p = project(&recording_all());
    p.ok(&["sections", "add", "Backend"]);
    assert_reports(&p, "tasks add One --id F001 --section Backend", &["task.created F001 pending"]);
    assert_reports(&p, "tasks add Two --id F002", &["task.created F002 pending"]);
    assert_reports(&p, "tasks update F001 --title Better", &["task.updated F001 pending"]);
    assert_reports(&p, "tasks depend F002 --on F001", &["task.updated F002 pending"]);
    assert_reports(&p, "tasks claim F001 --agent a", &["task.updated F001 in_progress"]);
    assert_reports(&p, "tasks claim F001 --agent a", &[]);
    assert_reports(&p, "tasks renew F001 --agent a", &[]);
    assert_reports(&p, "tasks release F001 --agent a", &["task.updated F001 pending"]);
    assert_reports(&p, "tasks next --claim --agent a", &["task.updated F001 in_progress"]);
    assert_reports(&p, "tasks fail F001 --agent a -m no", &["task.failed F001 failed"]);
    assert_reports(&p, "tasks fail F001 --agent a -m no", &[]);
    assert_reports(&p, "tasks retry F001", &["task.updated F001 pending"]);
    assert_reports(
        &p,
        "tasks update F001 --status in_progress --agent a",
        &["task.updated F001 in_progress"],
    );
    assert_reports(
        &p,
        "tasks done F001 --agent a",
        &["task.completed F001 completed", "section.completed Backend"],
    );
    assert_reports(&p, "tasks reject F001 -m again", &["task.updated F001 pending"]);
    assert_reports(
        &p,
        "tasks update F001 --status completed",
        &["task.completed F001 completed", "section.completed Backend"],
    );
    assert_reports(&p, "tasks skip F002", &["task.updated F002 skipped", "project.completed shop"]);
    assert_reports(&p, "tasks add Three --id F003", &["task.created F003 pending"]);
    assert_reports(&p, "tasks delete F003", &["project.completed shop"]);
    assert_reports(&p, "tasks list", &[]);
}

#[test]
fn imported_tasks_count_as_created() {
    let p = project(&recording_all());
    std::fs::write(p.root().join("plan.md"), "# Plan\n- [ ] F001: One\n- [x] F002: Two\n").unwrap();
    assert_reports(&p, "tasks import plan.md", &["task.created F001 pending", "task.created F002 completed"]);
}

#[test]
fn a_lost_lease_is_reported_by_the_command_that_ended_it() {
    let p = project(&recording_all());
    p.ok(&["tasks", "add", "One", "--id", "F001"]);
    p.ok(&["tasks", "claim", "F001", "--agent", "a", "--ttl", "1s"]);
    new_calls(&p);
    p.wait_until_expired("F001");
    assert_reports(
        &p,
        "tasks claim F001 --agent b --ttl 1m",
        &["lease.lost F001 a", "task.updated F001 in_progress"],
    );
    p.ok(&["tasks", "skip", "F001", "--force", "--agent", "c"]);
    let mut reported = new_calls(&p);
    reported.sort();
    assert_eq!(reported, ["lease.lost F001 b", "project.completed shop", "task.updated F001 skipped"]);
    p.ok(&["tasks", "add", "Two", "--id", "F002"]);
    p.ok(&["tasks", "claim", "F002", "--agent", "a", "--ttl", "1m"]);
    new_calls(&p);
    assert_reports(
        &p,
        "locks release F002 --force --agent b",
        &["lease.lost F002 a", "task.updated F002 pending"],
    );
    p.ok(&["tasks", "claim", "F002", "--agent", "a", "--ttl", "1s"]);
    new_calls(&p);
    p.wait_until_expired("F002");
    assert_reports(&p, "locks cleanup --agent b", &["lease.lost F002 a", "task.updated F002 pending"]);
}

#[test]
fn of_many_concurrent_finishes_one_reports_that_the_section_is_completed() {
    let p = project(&recording_all());
    p.ok(&["sections", "add", "Backend", "--parallel"]);
    let keys: Vec<String> = (1..=6).map(|number| format!("F{number}")).collect();
    for key in &keys {
        p.ok(&["tasks", "add", "Work", "--id", key, "--section", "Backend"]);
    }
    for key in &keys {
        p.ok(&["tasks", "claim", key, "--agent", key]);
    }
    new_calls(&p);
    let running: Vec<_> = keys.iter().map(|key| p.spawn(&["tasks", "done", key, "--agent", key])).collect();
    for finishing in running {
        assert_eq!(finishing.end().code, Some(0));
    }
    let new_calls = new_calls(&p);
    let count = |event: &str| new_calls.iter().filter(|line| line.starts_with(event)).count();
    assert_eq!((count("task.completed"), count("section.completed"), count("project.completed")), (6, 1, 1));
}

#[test]
fn no_hooks_runs_no_hook_and_leaves_no_log() {
    let p = project(&recording_all());
    p.ok(&["tasks", "add", "One", "--no-hooks"]);
    p.ok(&["--no-hooks", "tasks", "claim", "T1", "--agent", "a"]);
    p.ok(&["tasks", "add", "Two", "--dry-run"]);
    let off = [("TENURE_NO_HOOKS", "1")];
    assert_eq!(run_with(&p, &off, &["tasks", "done", "T1", "--agent", "a"]).code, Some(0));
    assert_eq!(run_with(&p, &off, &["hooks", "run", "project.completed"]).code, Some(2));
    assert_eq!(new_calls(&p), Vec::<String>::new());
    assert!(!p.root().join(".tenure/logs").exists());
}

#[test]
fn a_failing_hook_is_reported_and_does_not_fail_the_command() {
    let p = project(
        "  - {name: bad, event: task.created, type: script, command: ./bad.sh, args: ['${TOKEN}']}\n",
    );
    script(&p, "bad.sh", "echo \"cannot reach $1\" >&2; exit 7");
    let ran = run_with(&p, &[("TOKEN", "s3cret-value")], &["--json", "tasks", "add", "One"]);
    assert_eq!(ran.data()["task"]["key"], "T1");
    assert_eq!(
        ran.err,
        "Warning: hook bad on task.created failed: it exited with 7; it said: cannot reach ${TOKEN}\n"
    );
    assert_eq!(last_run(&p)["error"], "it exited with 7");
    assert_eq!(last_run(&p)["task"], "T1");
    let log = read(&p, ".tenure/logs/hooks.log");
    assert!(log.contains("it exited with 7") && !log.contains("s3cret"), "{log}");
    let quiet = run_with(&p, &[("TOKEN", "s3cret-value")], &["tasks", "add", "Two", "-q"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));
}

#[test]
fn an_async_hook_outlives_the_command_and_its_session() {
    let p = project(
        "  - {name: slow, event: task.created, type: script, command: ./slow.sh, args: ['{{task.title}}', '${TOKEN}'], async: true}\n",
    );
    let variables = [("TOKEN", "s3cret-value"), ("TENURE_ATTEMPT", "mark"), ("TENURE_FENCE", "7")];
    script(
        &p,
        "slow.sh",
        "tr '\\0' ' ' < /proc/$PPID/cmdline > helper.tmp; tr '\\0' '\\n' < /proc/$PPID/environ > environ\n\
         ps -o sid= -p $PPID > session; mv helper.tmp helper\n\
         until test -e go; do sleep 0.05; done; printf '%s' \"$1\" > done",
    );
    let title = "it's \"quoted\" $(touch oops)\nand more";
    let ran = run_with(&p, &variables, &["tasks", "add", title]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    // The command has ended, while its hook waits or has not begun.
    assert!(!p.root().join("done").exists());
    until("the hook runs", || p.root().join("helper").exists());
    let helper = read(&p, "helper");
    assert!(helper.trim_end().ends_with("tenure hooks deliver"), "{helper}");
    let environ = read(&p, "environ");
    // Empty: the hook left the attempt on purpose, so it is not ended with it.
    let has = |line: &str| environ.lines().any(|found| found == line);
    assert!(has("TENURE_ATTEMPT=") && !environ.contains("TENURE_FENCE"), "{environ}");
    assert_ne!(read(&p, "session").trim(), our_session());
    assert_eq!(last_run(&p), Value::Null);

    std::fs::write(p.root().join("go"), "").unwrap();
    until("the hook has ended", || last_run(&p)["outcome"] == "succeeded");
    assert_eq!(read(&p, "done"), title);
    assert!(!p.root().join("oops").exists());
    assert!(!read(&p, ".tenure/logs/hooks.log").contains("s3cret"));
}

/// As `ps` prints it: 0 if the session began outside this pid namespace.
fn our_session() -> String {
    let pid = std::process::id().to_string();
    let printed = std::process::Command::new("ps").args(["-o", "sid=", "-p", &pid]).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

#[test]
fn changes_made_by_a_hook_trigger_no_hooks() {
    let p = project("  - {name: more, event: task.created, type: script, command: ./more.sh}\n");
    script(&p, "more.sh", &format!("echo x >> calls; exec {} tasks add More", SUITE.binary));
    // Commands in a hook do not get the variable with which the harness trusts projects.
    p.trust();
    p.ok(&["tasks", "add", "One"]);
    assert_eq!(read(&p, "calls"), "x\n");
    assert_eq!(p.ok(&["tasks", "list"])["total"], 2);
}

#[test]
fn a_supervised_command_reports_its_start_and_its_end() {
    let p = project(&recording_all());
    p.ok(&["tasks", "add", "One", "--id", "F001"]);
    new_calls(&p);
    assert_eq!(p.run(&["tasks", "run", "F001", "--agent", "a", "--", "true"]).code, Some(0));
    let expected =
        ["project.completed shop", "task.completed F001 completed", "task.updated F001 in_progress"];
    // The command does not wait for the first hook, because nothing renews its lease yet.
    until("all three have run", || {
        let mut lines: Vec<String> = read(&p, "calls").lines().map(str::to_owned).collect();
        lines.sort();
        lines == expected
    });
}

#[test]
fn an_interrupt_ends_the_hook_but_not_the_command() {
    let p = project("  - {name: stuck, event: task.created, type: script, command: ./stuck.sh}\n");
    script(&p, "stuck.sh", "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000");
    let adding = p.spawn(&["tasks", "add", "One"]);
    until("the hook runs", || p.root().join("pid").exists());
    adding.signal(Signal::INT);
    let answer = adding.end();
    assert_eq!(answer.code, Some(0));
    assert_eq!(answer.err, "Warning: hook stuck on task.created failed: it was interrupted\n");
    assert!(!processes::is_alive(read(&p, "pid").trim().parse().unwrap()));
}
