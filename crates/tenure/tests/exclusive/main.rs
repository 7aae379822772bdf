//! `tenure exclusive`, with real processes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::ops::Deref;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tenure_testkit::cli::{self, Sandbox, StoreKind, Suite, processes, until};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// A project in a separate sandbox.
struct Project(cli::Project);

impl Deref for Project {
    type Target = cli::Project;

    fn deref(&self) -> &cli::Project {
        &self.0
    }
}

impl Project {
    fn new() -> Self {
        Self(Sandbox::new(SUITE).project("p"))
    }

    fn tenure(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> (i32, Value) {
        let output = self.command(args).arg("--json").output().unwrap();
        let value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stdout)));
        (output.status.code().unwrap(), value)
    }

    fn lock(&self) -> PathBuf {
        self.root().join(".tenure/.exclusive-lock")
    }

    fn write_lock(&self, holder: &str, pid: u32, hostname: &str) {
        let text = format!(
            r#"{{"holder":"{holder}","pid":{pid},"hostname":"{hostname}","started_at":"2025-10-25T12:00:00Z","note":"kept"}}"#
        );
        std::fs::write(self.lock(), text).unwrap();
    }

    /// Starts `exclusive run` and waits until its command has the lock.
    fn running(&self, script: &str) -> Child {
        let child = self
            .command(&["exclusive", "run", "--holder", "tool", "--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The lock is first the wrapper's, then that of the command.
        until("the command has the lock", || {
            let text = std::fs::read(self.lock()).unwrap_or_default();
            serde_json::from_slice::<Value>(&text).is_ok_and(|lock| lock["pid"] != child.id())
        });
        child
    }
}

fn dead_pid() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    pid
}

fn hostname() -> String {
    tenure_lock::hostname()
}

#[test]
fn a_second_tool_is_refused_at_once_and_the_holder_is_named() {
    let project = Project::new();
    let me = std::process::id().to_string();
    let (code, _) = project.json(&["exclusive", "acquire", "--holder", "first", "--pid", &me]);
    assert_eq!(code, 0);
    let (code, answer) = project.json(&["exclusive", "acquire", "--holder", "second", "--pid", &me]);
    assert_eq!(code, 6);
    assert_eq!(answer["error"]["code"], "EXCLUSIVE_LOCKED");
    assert_eq!(answer["error"]["details"]["lockedBy"], "first");
    assert_eq!(answer["error"]["details"]["holder"]["pid"], std::process::id());
}

#[test]
fn the_hint_of_a_refusal_repeats_the_options() {
    let project = Project::new();
    let me = std::process::id().to_string();
    project.json(&["exclusive", "acquire", "--holder", "first", "--pid", &me]);
    let hint = |words: &[&str]| {
        let (code, answer) = project.json(words);
        assert_eq!(code, 6);
        answer["hints"][0]["command"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        hint(&["exclusive", "acquire", "--holder", "my tool", "--pid", &me, "--drain", "90s"]),
        format!("tenure exclusive acquire --wait --holder 'my tool' --drain 1m30s --pid {me}")
    );
    let output = project.tenure(&["exclusive", "run", "--holder", "tool", "--drain", "--", "ls", "docs"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("tenure exclusive run --wait --holder tool --drain -- ls docs"), "{text}");
}

#[test]
fn the_lock_is_held_by_the_process_that_called_tenure() {
    let project = Project::new();
    let (_, answer) = project.json(&["exclusive", "acquire", "--holder", "tool"]);
    assert_eq!(answer["data"]["exclusive"]["pid"], std::process::id());
    let (code, _) = project.json(&["exclusive", "release"]);
    assert_eq!(code, 0);
    assert!(!project.lock().exists());
    let (code, answer) = project.json(&["exclusive", "release"]);
    assert_eq!((code, &answer["error"]["code"]), (4, &Value::from("LOCK_NOT_FOUND")));
}

#[test]
fn the_lock_of_a_live_holder_is_released_only_by_force() {
    let project = Project::new();
    let mut child = project.running("exec sleep 600");
    let (code, answer) = project.json(&["exclusive", "release"]);
    assert_eq!((code, &answer["error"]["code"]), (5, &Value::from("PERMISSION_DENIED")));
    assert!(project.lock().exists());
    let (code, answer) = project.json(&["exclusive", "release", "--force"]);
    assert_eq!((code, &answer["data"]["forced"]), (0, &Value::Bool(true)));
    processes::signal(child.id(), Signal::TERM);
    let output = child.wait().unwrap();
    assert_eq!(output.code(), Some(143));
}

#[test]
fn the_lock_of_a_dead_holder_blocks_nothing() {
    let project = Project::new();
    project.write_lock("gone", dead_pid(), &hostname().to_uppercase());
    assert_eq!(project.json(&["exclusive", "status"]).1["data"]["state"], "stale");
    assert_eq!(project.json(&["status"]).1["data"]["exclusiveLock"], Value::Null);
    assert_eq!(project.json(&["exclusive", "acquire", "--holder", "next"]).0, 0);
    assert_eq!(project.json(&["exclusive", "status"]).1["data"]["exclusive"]["holder"], "next");
}

#[test]
fn a_hand_written_lock_is_honoured_here_and_from_another_machine() {
    let project = Project::new();
    for host in [hostname(), "another-machine".to_owned()] {
        let pid = if host == hostname() { std::process::id() } else { dead_pid() };
        project.write_lock("by-hand", pid, &host);
        let (code, answer) = project.json(&["exclusive", "acquire", "--holder", "other"]);
        assert_eq!((code, &answer["error"]["details"]["lockedBy"]), (6, &Value::from("by-hand")));
        assert!(
            project.json(&["why"]).1["data"]["reasons"][0]["reason"].as_str().unwrap().contains("by-hand")
        );
    }
}

#[test]
fn a_malformed_lock_counts_as_locked_and_is_deleted_only_by_force() {
    let project = Project::new();
    for text in ["", "not json", r#"{"holder":"x"}"#, "[]"] {
        std::fs::write(project.lock(), text).unwrap();
        assert_eq!(project.json(&["exclusive", "acquire", "--holder", "other"]).0, 6, "{text:?}");
        assert_eq!(project.json(&["exclusive", "release"]).0, 6, "{text:?}");
        assert_eq!(std::fs::read_to_string(project.lock()).unwrap(), text);
    }
    assert_eq!(project.json(&["exclusive", "release", "--force"]).0, 0);
    assert!(!project.lock().exists());
}

#[test]
fn run_passes_the_exit_code_on_and_leaves_no_lock() {
    let project = Project::new();
    for code in [0, 3, 255] {
        let seen = "test -e .tenure/.exclusive-lock || exit 99";
        let script = format!("{seen}; exit {code}");
        let output = project.tenure(&["exclusive", "run", "--holder", "tool", "--", "sh", "-c", &script]);
        assert_eq!(output.status.code(), Some(code));
        assert!(!project.lock().exists());
    }
    let output = project.tenure(&["exclusive", "run", "--holder", "tool", "--", "no-such-command-here"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(!project.lock().exists());
    let output = project.tenure(&["exclusive", "run", "--holder", "tool", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(output.status.code(), Some(137));
    assert!(!project.lock().exists());
}

#[test]
fn with_json_the_output_of_the_command_is_not_mixed_into_the_answer() {
    let project = Project::new();
    let output = project.tenure(&["--json", "exclusive", "run", "--holder", "tool", "--", "echo", "noise"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["data"]["exitCode"], 0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("noise"));
}

#[test]
fn run_passes_signals_on_and_always_removes_the_lock() {
    let project = Project::new();
    for (name, signal) in [("INT", Signal::INT), ("TERM", Signal::TERM)] {
        let script =
            format!("trap 'echo caught {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = project.running(&script);
        // Before the trap is set, the signal would end the shell.
        let mut out = child.stdout.take().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(&mut out, &mut ready).unwrap();
        processes::signal(child.id(), signal);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(7), "{name}");
        assert!(!project.lock().exists());
    }
}

#[test]
fn the_lock_of_a_killed_run_lasts_as_long_as_its_command() {
    let project = Project::new();
    let file = project.root().join("pid");
    let mut child = project.running("echo $$ > pid; exec sleep 60");
    until("the command", || std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')));
    let pid: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    processes::signal(child.id(), Signal::KILL);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let (code, answer) = project.json(&["exclusive", "acquire", "--holder", "next"]);
    assert_eq!((code, &answer["error"]["details"]["holder"]["pid"]), (6, &Value::from(pid)));
    assert!(processes::is_alive(pid));
    processes::signal(pid, Signal::KILL);
    until("its end", || !processes::is_alive(pid));
    assert!(project.lock().exists());
    assert_eq!(project.json(&["exclusive", "acquire", "--holder", "next"]).0, 0);
}

#[test]
fn a_command_does_not_start_without_the_lock_that_it_takes_over() {
    let project = Project::new();
    project.write_lock("other", std::process::id(), &hostname());
    let lost = tenure_lock::ExclusiveLock::new("tool", "1").to_json().unwrap();
    let mut late = project.command(&["start-exclusive", "--", "touch", "ran"]);
    late.env("TENURE_EXCLUSIVE_ROOT", project.root()).env("TENURE_EXCLUSIVE_LOCK", lost);
    assert_eq!(late.output().unwrap().status.code(), Some(6));
    assert!(!project.root().join("ran").exists());
}

#[test]
fn the_locks_of_tenure_and_beads_are_one() {
    let project = Project::new();
    let beads = project.root().join(".beads");
    std::fs::create_dir(&beads).unwrap();
    let theirs = beads.join(".exclusive-lock");
    let me = std::process::id().to_string();
    project.write_lock("by-hand", std::process::id(), &hostname());
    std::fs::rename(project.lock(), &theirs).unwrap();
    let (_, answer) = project.json(&["exclusive", "status"]);
    assert_eq!(
        (&answer["data"]["state"], &answer["data"]["exclusive"]["holder"]),
        (&"held".into(), &"by-hand".into())
    );
    let (code, answer) = project.json(&["exclusive", "acquire", "--holder", "tool"]);
    assert_eq!((code, &answer["error"]["details"]["lockedBy"]), (6, &Value::from("by-hand")));
    assert!(!project.lock().exists(), "a refused lock leaves nothing");
    assert_eq!(
        project.tenure(&["exclusive", "run", "--holder", "tool", "--", "true"]).status.code(),
        Some(6)
    );
    // Released by the process that it names, as any lock.
    assert_eq!(project.json(&["exclusive", "release", "--pid", &me]).0, 0);
    assert!(!theirs.exists());

    let both = "test -e .tenure/.exclusive-lock && test -e .beads/.exclusive-lock";
    let run = project.tenure(&["exclusive", "run", "--holder", "tool", "--", "sh", "-c", both]);
    assert_eq!(run.status.code(), Some(0));
    assert!(!theirs.exists() && !project.lock().exists());
    std::fs::write(&theirs, "not json").unwrap();
    assert_eq!(project.json(&["exclusive", "status"]).1["data"]["state"], "malformed");
    assert_eq!(project.json(&["exclusive", "release", "--force"]).0, 0);
    assert!(!theirs.exists());
}

#[test]
fn a_waiter_says_after_a_second_what_it_waits_for() {
    let project = Project::new();
    project.write_lock("by-hand", std::process::id(), &hostname());
    let output = project.tenure(&["exclusive", "acquire", "--holder", "second", "--wait", "1300ms"]);
    assert_eq!(output.status.code(), Some(9));
    let said = String::from_utf8_lossy(&output.stderr);
    let line = format!("Waiting for the exclusive lock: by-hand, pid {} on", std::process::id());
    assert_eq!(said.matches(&line).count(), 1, "{said}");
    assert!(said.contains("since 2025-10-25"), "{said}");
    let quick = project.tenure(&["exclusive", "acquire", "--holder", "second", "--wait", "100ms"]);
    assert!(!String::from_utf8_lossy(&quick.stderr).contains("Waiting for"));
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released_or_times_out() {
    let project = Project::new();
    let mut first = project.running("exec sleep 600");
    let (code, answer) = project.json(&["exclusive", "acquire", "--holder", "second", "--wait", "100ms"]);
    assert_eq!((code, &answer["error"]["code"]), (9, &Value::from("WAIT_TIMEOUT")));
    let mut second = project
        .command(&["exclusive", "run", "--holder", "second", "--wait", "--", "true"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    processes::signal(first.id(), Signal::TERM);
    first.wait().unwrap();
    assert!(second.wait().unwrap().success());
    assert!(!project.lock().exists());
}

#[test]
fn of_eight_concurrent_tools_exactly_one_gets_the_lock() {
    let project = Project::new();
    for round in 0..20 {
        // All of them try to remove the stale lock.
        if round % 2 == 1 {
            project.write_lock("gone", dead_pid(), &hostname());
        }
        let me = std::process::id().to_string();
        let children: Vec<Child> = (0..8)
            .map(|n| {
                project
                    .command(&["exclusive", "acquire", "--holder", &format!("tool{n}"), "--pid", &me])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let codes: Vec<_> = children.into_iter().map(|mut c| c.wait().unwrap().code().unwrap()).collect();
        assert_eq!(codes.iter().filter(|c| **c == 0).count(), 1, "round {round}: {codes:?}");
        assert_eq!(codes.iter().filter(|c| **c == 6).count(), 7, "round {round}: {codes:?}");
        assert_eq!(project.json(&["exclusive", "release", "--pid", &me]).0, 0);
    }
}

#[test]
fn drain_waits_until_no_attempt_runs_and_releases_the_lock_on_a_timeout() {
    use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
    use tenure_core::id::{RandomIds, TaskId};
    use tenure_core::kernel::{self, Outcome, Terms};
    use tenure_core::store::{Durability, Store};
    use tenure_core::{Context, Policy, SystemClock};

    let project = Project::new();
    let (_, added) = project.json(&["tasks", "add", "long work"]);
    let id = TaskId::new(added["data"]["task"]["id"].as_str().unwrap());
    let options = tenure_sqlite::OpenOptions::new(std::sync::Arc::new(SystemClock));
    let database: &Path = &project.root().join(".tenure/tenure.db");
    let store: Box<dyn Store> = Box::new(tenure_sqlite::SqliteStore::open(database, options).unwrap());
    let policy =
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
    let ctx = Context::new(&ThisMachine, &RandomIds, policy);
    let me = Incarnation::current();
    let caller = Caller::new(Holder::agent("worker")).with_process(me.clone());
    let attempt = store
        .write(Durability::Power, |tx| {
            let terms = Terms::new(Duration::from_mins(10));
            let grant = kernel::acquire_task(tx, &ctx, &caller, &id, &terms)?.granted()?;
            kernel::begin_attempt(tx, &ctx, &grant.lease, &me, None, None, None)
        })
        .unwrap();

    let (code, _) = project.json(&["exclusive", "acquire", "--holder", "tool", "--drain", "200ms"]);
    assert_eq!(code, 9);
    assert!(!project.lock().exists());

    let mut draining = project
        .command(&["exclusive", "run", "--holder", "tool", "--drain", "--", "true"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the lock", || project.lock().exists());
    assert!(draining.try_wait().unwrap().is_none());
    let outcome = Outcome { exit_code: Some(0), reason: "done".into(), ..Outcome::default() };
    store.write(Durability::Power, |tx| kernel::end_attempt(tx, &ctx, &attempt, &outcome, "worker")).unwrap();
    assert!(draining.wait().unwrap().success());
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Runs a script of `examples/` in the project, with the binary under test on its search path.
fn run_example(project: &Project, name: &str, args: &[&str]) -> Output {
    let folder = Path::new(SUITE.binary).parent().unwrap();
    let path =
        std::env::join_paths([folder, Path::new("/usr/local/bin"), Path::new("/usr/bin"), Path::new("/bin")]);
    let template = project.command(&["status"]);
    let mut command = Command::new(example(name));
    command.env_clear().args(args).current_dir(project.root()).stdin(Stdio::null());
    command.envs(template.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("PATH", path.unwrap()).output().unwrap()
}

#[test]
fn the_shell_example_locks_the_project_and_unlocks_it() {
    let project = Project::new();
    let status = ["sh", "-c", "tenure exclusive status; tenure exclusive acquire --holder other"];
    let output = run_example(&project, "exclusive-lock.sh", &status);
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(seen.contains("exclusive-lock.sh"), "{seen}");
    assert_eq!(output.status.code(), Some(6), "another tool got the lock: {output:?}");
    assert!(!project.lock().exists());
}

#[test]
fn the_examples_of_workers_finish_every_task_once() {
    let project = Project::new();
    for (script, name) in [("worker.sh", "one"), ("worker.py", "two")] {
        for number in 1..=3 {
            assert!(project.tenure(&["tasks", "add", &format!("{name} {number}")]).status.success());
        }
        let output = run_example(&project, script, &["sh", "-c", &format!("echo x >> {name}")]);
        assert!(output.status.success(), "{script}: {output:?}");
        assert_eq!(
            std::fs::read_to_string(project.root().join(name)).unwrap().lines().count(),
            3,
            "{script}"
        );
    }
    let (_, list) = project.json(&["tasks", "list", "--status", "completed"]);
    assert_eq!(list["data"]["total"], 6, "{list}");
}
