use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::TestEnv;

/// A project whose hooks are these, and a script `note.sh` that writes down what it hears.
fn project(hooks: &str) -> TestEnv {
    let mut env = TestEnv::project();
    env.set("PATH", std::env::var_os("PATH").unwrap());
    script(&env, "note.sh", "echo \"$TENURE_EVENT $*\" >> heard");
    configure(&env, hooks);
    env
}

fn configure(env: &TestEnv, hooks: &str) {
    let path = env.path("work/.tenure/config.yaml");
    let before = std::fs::read_to_string(&path).unwrap();
    let own = before.split("\nhooks:").next().unwrap();
    env.write("work/.tenure/config.yaml", format!("{own}\nhooks:\n{hooks}"));
}

/// A hook that notes this event and the task's key and status.
fn noting(event: &str, args: &str) -> String {
    format!("  - {{name: {event}, event: {event}, type: script, command: ./note.sh, args: [{args}]}}\n")
}

fn noting_all() -> String {
    let task = r#""{{task.key}}", "{{task.status}}""#;
    let events =
        ["created", "updated", "completed", "failed"].map(|event| noting(&format!("task.{event}"), task));
    events.concat()
        + &noting("section.completed", r#""{{section.name}}""#)
        + &noting("project.completed", r#""{{project.name}}""#)
        + &noting("lease.lost", r#""{{task.key}}", "{{lease.holder.id}}""#)
}

fn script(env: &TestEnv, name: &str, text: &str) {
    let path = env.write(&format!("work/{name}"), format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn read(env: &TestEnv, name: &str) -> String {
    std::fs::read_to_string(env.path(&format!("work/{name}"))).unwrap_or_default()
}

/// What was heard since the last question.
fn heard(env: &TestEnv) -> Vec<String> {
    let lines = read(env, "heard").lines().map(str::to_owned).collect();
    let _ = std::fs::remove_file(env.path("work/heard"));
    lines
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn tells(env: &TestEnv, words: &str, expected: &[&str]) {
    let words: Vec<&str> = words.split(' ').collect();
    env.ok(&words);
    assert_eq!(heard(env), expected, "{words:?}");
}

#[test]
fn every_verb_tells_the_one_thing_that_happened() {
    let env = project(&noting_all());
    env.ok(&["sections", "add", "Backend"]);
    tells(&env, "tasks add One --id F001 --section Backend", &["task.created F001 pending"]);
    tells(&env, "tasks add Two --id F002", &["task.created F002 pending"]);
    tells(&env, "tasks update F001 --title Better", &["task.updated F001 pending"]);
    tells(&env, "tasks depend F002 --on F001", &["task.updated F002 pending"]);
    tells(&env, "tasks claim F001 --agent a", &["task.updated F001 in_progress"]);
    tells(&env, "tasks claim F001 --agent a", &[]);
    tells(&env, "tasks renew F001 --agent a", &[]);
    tells(&env, "tasks release F001 --agent a", &["task.updated F001 pending"]);
    tells(&env, "tasks next --claim --agent a", &["task.updated F001 in_progress"]);
    tells(&env, "tasks fail F001 --agent a -m no", &["task.failed F001 failed"]);
    tells(&env, "tasks fail F001 --agent a -m no", &[]);
    tells(&env, "tasks retry F001", &["task.updated F001 pending"]);
    tells(&env, "tasks update F001 --status in_progress --agent a", &["task.updated F001 in_progress"]);
    tells(&env, "tasks done F001 --agent a", &["task.completed F001 completed", "section.completed Backend"]);
    tells(&env, "tasks reject F001 -m again", &["task.updated F001 pending"]);
    tells(
        &env,
        "tasks update F001 --status completed",
        &["task.completed F001 completed", "section.completed Backend"],
    );
    tells(&env, "tasks skip F002", &["task.updated F002 skipped", "project.completed shop"]);
    tells(&env, "tasks add Three --id F003", &["task.created F003 pending"]);
    tells(&env, "tasks delete F003", &["project.completed shop"]);
    tells(&env, "tasks list", &[]);
}

#[test]
fn imported_tasks_are_created_ones() {
    let env = project(&noting_all());
    env.write("work/plan.md", "# Plan\n- [ ] F001: One\n- [x] F002: Two\n");
    tells(&env, "tasks import plan.md", &["task.created F001 pending", "task.created F002 completed"]);
}

#[test]
fn a_holder_that_lost_its_lease_is_told_of_by_whoever_ended_it() {
    let env = project(&noting_all());
    env.ok(&["tasks", "add", "One", "--id", "F001"]);
    env.ok(&["tasks", "claim", "F001", "--agent", "a", "--ttl", "1m"]);
    heard(&env);
    env.later(Duration::from_mins(2));
    tells(
        &env,
        "tasks claim F001 --agent b --ttl 1m",
        &["lease.lost F001 a", "task.updated F001 in_progress"],
    );
    env.ok(&["tasks", "skip", "F001", "--force", "--agent", "c"]);
    let mut told = heard(&env);
    told.sort();
    assert_eq!(told, ["lease.lost F001 b", "project.completed shop", "task.updated F001 skipped"]);
    env.ok(&["tasks", "add", "Two", "--id", "F002"]);
    env.ok(&["tasks", "claim", "F002", "--agent", "a", "--ttl", "1m"]);
    heard(&env);
    tells(&env, "locks release F002 --force --agent b", &["lease.lost F002 a", "task.updated F002 pending"]);
    env.ok(&["tasks", "claim", "F002", "--agent", "a", "--ttl", "1m"]);
    heard(&env);
    env.later(Duration::from_mins(2));
    tells(&env, "locks cleanup --agent b", &["lease.lost F002 a", "task.updated F002 pending"]);
}

#[test]
fn of_many_who_finish_at_once_one_says_that_the_section_is_completed() {
    let env = project(&noting_all());
    env.ok(&["sections", "add", "Backend", "--parallel"]);
    let keys: Vec<String> = (1..=6).map(|number| format!("F{number}")).collect();
    for key in &keys {
        env.ok(&["tasks", "add", "Work", "--id", key, "--section", "Backend"]);
    }
    // The clock of the processes is the machine's, so they claim for themselves.
    for key in &keys {
        env.finish(env.process(&["tasks", "claim", key, "--agent", key])).exits(0);
    }
    heard(&env);
    let running: Vec<_> = keys
        .iter()
        .map(|key| {
            env.process(&["tasks", "done", key, "--agent", key]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let heard = heard(&env);
    let count = |event: &str| heard.iter().filter(|line| line.starts_with(event)).count();
    assert_eq!((count("task.completed"), count("section.completed"), count("project.completed")), (6, 1, 1));
}

#[test]
fn no_hooks_means_none_and_leaves_nothing_behind() {
    let mut env = project(&noting_all());
    env.ok(&["tasks", "add", "One", "--no-hooks"]);
    env.ok(&["--no-hooks", "tasks", "claim", "T1", "--agent", "a"]);
    env.ok(&["tasks", "add", "Two", "--dry-run"]);
    env.set("TENURE_NO_HOOKS", "1");
    env.ok(&["tasks", "done", "T1", "--agent", "a"]);
    assert_eq!(env.run(&["hooks", "run", "project.completed"]).code, 2);
    assert_eq!(heard(&env), Vec::<String>::new());
    assert!(!env.path("work/.tenure/logs").exists());
}

#[test]
fn a_failing_hook_breaks_nothing_and_is_seen() {
    let mut env = project(
        "  - {name: bad, event: task.created, type: script, command: ./bad.sh, args: ['${TOKEN}']}\n",
    );
    env.set("TOKEN", "s3cret-value");
    script(&env, "bad.sh", "echo \"cannot reach $1\" >&2; exit 7");
    let ran = env.json(&["tasks", "add", "One"]).exits(0);
    assert_eq!(ran.data()["task"]["key"], "T1");
    assert_eq!(
        ran.err,
        "Warning: hook bad on task.created failed: it exited with 7; it said: cannot reach ${TOKEN}\n"
    );
    let listed = env.json(&["hooks", "list"]).exits(0);
    assert_eq!(listed.data()["hooks"][0]["last"]["error"], "it exited with 7");
    assert_eq!(listed.data()["hooks"][0]["last"]["task"], "T1");
    let log = read(&env, ".tenure/logs/hooks.log");
    assert!(log.contains("it exited with 7") && !log.contains("s3cret"), "{log}");
    assert!(env.ok(&["tasks", "add", "Two", "-q"]).err.is_empty());
}

#[test]
fn an_async_hook_outlives_the_command_and_everything_around_it() {
    let mut env = project(
        "  - {name: slow, event: task.created, type: script, command: ./slow.sh, args: ['{{task.title}}', '${TOKEN}'], async: true}\n",
    );
    env.set("TOKEN", "s3cret-value").set("TENURE_ATTEMPT", "mark").set("TENURE_FENCE", "7");
    script(
        &env,
        "slow.sh",
        "tr '\\0' ' ' < /proc/$PPID/cmdline > helper.tmp; tr '\\0' '\\n' < /proc/$PPID/environ > environ\n\
         ps -o sid= -p $PPID > session; mv helper.tmp helper\n\
         until test -e go; do sleep 0.05; done; printf '%s' \"$1\" > done",
    );
    let title = "it's \"quoted\" $(touch oops)\nand more";
    let ran = env.finish(env.process(&["tasks", "add", title])).exits(0);
    assert_eq!(ran.err, "");
    // The command is over, and its hook has yet to begin or waits.
    assert!(!env.path("work/done").exists());
    wait_for("the hook", || env.path("work/helper").exists());
    let helper = read(&env, "helper");
    assert!(helper.trim_end().ends_with("tenure hooks deliver"), "{helper}");
    let environ = read(&env, "environ");
    assert!(!environ.contains("TENURE_ATTEMPT") && !environ.contains("TENURE_FENCE"), "{environ}");
    assert_ne!(read(&env, "session").trim(), our_session());
    assert_eq!(env.json(&["hooks", "list"]).data()["hooks"][0]["last"], serde_json::Value::Null);

    env.write("work/go", "");
    wait_for("its end", || env.json(&["hooks", "list"]).data()["hooks"][0]["last"]["outcome"] == "succeeded");
    assert_eq!(read(&env, "done"), title);
    assert!(!env.path("work/oops").exists());
    assert!(!read(&env, ".tenure/logs/hooks.log").contains("s3cret"));
}

/// As `ps` prints it: 0 where the session began outside this pid namespace.
fn our_session() -> String {
    let pid = std::process::id().to_string();
    let printed = std::process::Command::new("ps").args(["-o", "sid=", "-p", &pid]).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

#[test]
fn what_a_hook_does_itself_tells_no_hook() {
    let env = project("  - {name: more, event: task.created, type: script, command: ./more.sh}\n");
    script(
        &env,
        "more.sh",
        &format!("echo x >> calls; exec {} tasks add More", env!("CARGO_BIN_EXE_tenure")),
    );
    env.finish(env.process(&["tasks", "add", "One"])).exits(0);
    assert_eq!(read(&env, "calls"), "x\n");
    assert_eq!(env.json(&["tasks", "list"]).data()["total"], 2);
}

#[test]
fn a_supervised_command_tells_of_its_beginning_and_its_end() {
    let env = project(&noting_all());
    env.ok(&["tasks", "add", "One", "--id", "F001"]);
    heard(&env);
    env.finish(env.process(&["tasks", "run", "F001", "--agent", "a", "--", "true"])).exits(0);
    let expected =
        ["project.completed shop", "task.completed F001 completed", "task.updated F001 in_progress"];
    // The beginning is not waited for, so that no hook outlasts a lease that nobody renews yet.
    wait_for("all three", || {
        let mut lines: Vec<String> = read(&env, "heard").lines().map(str::to_owned).collect();
        lines.sort();
        lines == expected
    });
}

#[test]
fn an_interrupt_ends_the_hook_and_not_the_work() {
    let env = project("  - {name: stuck, event: task.created, type: script, command: ./stuck.sh}\n");
    script(&env, "stuck.sh", "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000");
    let mut command = env.process(&["tasks", "add", "One"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the hook", || env.path("work/pid").exists());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "Warning: hook stuck on task.created failed: it was interrupted\n");
    assert!(!std::path::Path::new(&format!("/proc/{}", read(&env, "pid").trim())).exists());
}

#[test]
fn hooks_can_be_listed_tried_and_run() {
    let hooks = noting("task.created", r#""{{task.key}}", "it's {{task.title}}", "${TOKEN}""#)
        + "  - {name: slack, event: task.failed, type: webhook, url: 'http://127.0.0.1:1/${TOKEN}?k={{task.key}}', headers: {A: 'Bearer ${TOKEN}'}, async: true}\n";
    let mut env = project(&hooks);
    env.set("TOKEN", "s3cret-value");
    env.ok(&["tasks", "add", "One", "--id", "F001", "--no-hooks"]);
    let mut story = String::new();
    for words in [
        &["hooks"][..],
        &["hooks", "test", "task.created", "--dry-run"],
        &["hooks", "test", "slack", "--dry-run"],
        &["hooks", "test", "slack"],
        &["hooks", "test", "nobody"],
        &["hooks", "test", "slack", "--event", "project.completed"],
        &["hooks", "test", "slack", "--event", "task.fail"],
        &["hooks", "run", "task.failed"],
        &["hooks", "run", "task.failed", "--task", "F001", "--dry-run"],
        &["hooks", "run", "task.failed", "--task", "F001"],
        &["hooks", "run", "runner.started"],
        &["hooks", "run", "lease.lost", "--task", "F001"],
        &["hooks", "run", "section.completed", "--task", "F001"],
    ] {
        writeln!(story, "{}", env.run(words)).unwrap();
    }
    insta::assert_snapshot!(story);
    assert!(env.ok(&["hooks", "test", "task.created"]).out.starts_with("Succeeded: task.created ("));
    assert!(
        env.ok(&["hooks", "run", "task.created", "--task", "F001"])
            .out
            .starts_with("Succeeded: task.created (")
    );
    assert_eq!(
        heard(&env),
        ["task.created T1 it's A sample task s3cret-value", "task.created F001 it's One s3cret-value"]
    );
    let failed = env.json(&["hooks", "test", "slack"]).exits(1);
    assert_eq!(failed.error_code(), "HOOK_FAILED");
    assert_eq!(failed.envelope()["error"]["details"]["result"]["outcome"], "failed");
    assert!(!format!("{story}{failed}{}", env.json(&["hooks"])).contains("s3cret"));
}
