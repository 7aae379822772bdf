//! Concurrent wake-ups, and projects that do not answer.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use tenure_testkit::cli::{Project, Running, processes, until};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::SUITE;
use crate::machine::{Machine, USUAL, decisions};

/// Makes a project unreadable until it is released: on SQLite a process that reads its configuration blocks, on PostgreSQL
/// its server accepts connections and does not answer.
enum Tarpit {
    Config { path: PathBuf, text: String },
    Server(Proxy),
}

impl Tarpit {
    fn of(project: &Project) -> Self {
        if SUITE.is_on_postgres() {
            let cluster = Cluster::shared();
            let proxy = Proxy::to(cluster.port());
            project.ok(&["config", "set", "store.url", &cluster.tcp_url("tenure", proxy.port())]);
            proxy.hold();
            return Self::Server(proxy);
        }
        let path = project.root().join(".tenure/config.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self::Config { path, text }
    }

    fn release(self) {
        match self {
            Self::Server(proxy) => proxy.release(),
            // A blocked reader gets the text through the pipe; later ones find a file again.
            Self::Config { path, text } => {
                let pipe = path.with_extension("pipe");
                std::fs::rename(&path, &pipe).unwrap();
                std::fs::write(&path, &text).unwrap();
                let mut writer = File::options().write(true).open(pipe).unwrap();
                writer.write_all(text.as_bytes()).unwrap();
            }
        }
    }
}

/// What a process reports if it could not write because another one does not finish.
fn locked_message() -> &'static str {
    if SUITE.is_on_postgres() {
        "the project is locked by another program"
    } else {
        "has kept the store from being written"
    }
}

#[test]
fn of_twenty_concurrent_wake_ups_one_acts_and_the_others_end_at_once_with_exit_code_0() {
    let machine = Machine::new();
    let slow = machine.project("slow");
    slow.task("A", &["mark begun", "wait go"]);
    // The wake-up that acts is delayed here, so that all others start while it works.
    let tarpit = Tarpit::of(&slow);
    let mut left: Vec<Running> = (0..20).map(|_| machine.spawn(&["--json", "runners", "wakeup"])).collect();
    let mut ended = Vec::new();
    until("nineteen have ended", || {
        ended.extend(left.extract_if(.., |process| !process.is_running()));
        left.len() == 1
    });
    tarpit.release();
    let acting = left.remove(0).end();
    for answer in ended.into_iter().map(Running::end) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(answer.json()["data"]["overlapping"], true, "{answer:?}");
    }
    assert_eq!(acting.code, Some(0), "{acting:?}");
    assert_eq!(decisions(&acting.json()["data"])["slow"].0, "started");
    machine.wait_for("begun");
    assert_eq!(slow.runners().len(), 1);
}

#[test]
fn a_project_whose_store_is_stuck_does_not_delay_the_others() {
    let machine = Machine::new();
    let stuck = machine.project("a-stuck");
    stuck.task("A", &["mark begun-stuck"]);
    let others: Vec<_> = (0..3).map(|n| machine.project(&format!("b{n}"))).collect();
    for (n, project) in others.iter().enumerate() {
        project.task("A", &[&format!("mark begun-{n}"), "wait go"]);
    }
    let gate = stuck.hold_writers();
    let wake_up = machine.spawn(&["--json", "runners", "wakeup"]);
    for n in 0..3 {
        machine.wait_for(&format!("begun-{n}"));
    }
    // It ends by itself, while the gate is still closed.
    let answer = wake_up.end();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["a-stuck"].0, "error", "{decided:?}");
    assert!(decided["a-stuck"].1.contains(locked_message()), "{decided:?}");
    for n in 0..3 {
        assert_eq!(decided[&format!("b{n}")].0, "started", "{decided:?}");
    }
    drop(gate);
    // The next wake-up serves the project that this one could not.
    until("it is served", || {
        machine.wake_up(&[]);
        stuck.status("A") == "completed"
    });
}

#[test]
fn a_project_that_does_not_answer_is_given_up_at_the_deadline() {
    let machine = Machine::new();
    let mute = machine.project("a-mute");
    let other = machine.project("other");
    other.task("A", &["mark begun", "wait go"]);
    let _tarpit = Tarpit::of(&mute);
    let answer = machine.run(&["--json", "runners", "wakeup", "--timeout", "10s"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["a-mute"].0, "error", "{decided:?}");
    // A server has its own, shorter limit.
    let reason = if SUITE.is_on_postgres() { "no answer for 5 s" } else { "it did not answer within 10s" };
    assert!(decided["a-mute"].1.ends_with(reason), "{decided:?}");
    assert_eq!(decided["other"].0, "started", "{decided:?}");
    machine.wait_for("begun");
}

#[test]
fn a_runner_that_cannot_renew_because_the_store_is_stuck_is_not_killed() {
    // The task's lease outlasts this test; only the runner is silent for too long.
    let machine = Machine::with(&USUAL.replace("taskTimeout: 10s", "taskTimeout: 5m"));
    let project = machine.project("p");
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.detached_runner(&[]);
    machine.wait_for("begun");
    let gate = project.hold_writers();
    let stale = || project.ok(&["runners", "wakeup", "--dry-run"])["results"][0]["decision"] == "restarted";
    until("it has been silent for too long", stale);
    let answer = machine.run(&["--json", "runners", "wakeup"]);
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["p"].0, "error", "{decided:?}");
    assert!(decided["p"].1.contains(locked_message()), "{decided:?}");
    assert!(processes::is_alive(pid));
    drop(gate);
    machine.give("go");
    project.wait_until("A", "completed");
}

#[test]
fn the_projects_are_served_although_the_directory_is_locked() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    // The same locks that a process leaves held when it is stopped while it writes.
    let gate = machine.tenure_home().join("tenure.gate.lock");
    let gate = File::options().read(true).write(true).create(true).truncate(false).open(gate).unwrap();
    gate.lock().unwrap();
    let writer = rusqlite::Connection::open(machine.tenure_home().join("tenure.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE known_projects SET last_seen_at = 1;").unwrap();
    let answer = machine.run(&["--json", "runners", "wakeup", "--timer", "cron"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(decisions(&answer.json()["data"])["p"].0, "started", "{answer:?}");
    assert!(answer.err.contains("cannot record the timer's call"), "{answer:?}");
    machine.wait_for("begun");
}
