//! Wake-ups at the same time, and one project that holds its wake-up up.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::machine::{Machine, Project, decisions};
use crate::world::{Running, until};

/// A project that cannot even be looked at until this lets it: whoever reads its configuration waits.
struct Tarpit {
    config: PathBuf,
    text: String,
}

impl Tarpit {
    fn of(project: &Project<'_>) -> Self {
        let config = project.root.join(".tenure/config.yaml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::remove_file(&config).unwrap();
        assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
        Self { config, text }
    }

    /// Whoever reads gets it now, and whoever comes finds a file again.
    fn let_go(self) {
        let pipe = self.config.with_extension("pipe");
        std::fs::rename(&self.config, &pipe).unwrap();
        std::fs::write(&self.config, &self.text).unwrap();
        let mut writer = File::options().write(true).open(pipe).unwrap();
        writer.write_all(self.text.as_bytes()).unwrap();
    }
}

#[test]
fn of_twenty_at_once_one_acts_and_the_others_end_at_once_with_zero() {
    let machine = Machine::new();
    let slow = machine.project("slow");
    slow.task("A", &["mark begun", "wait go"]);
    // Whoever acts is held up here, so all the others come while it is at work.
    let tarpit = Tarpit::of(&slow);
    let mut left: Vec<Running> = (0..20).map(|_| machine.spawn(&["--json", "runners", "wakeup"])).collect();
    let mut ended = Vec::new();
    until("nineteen have ended", || {
        ended.extend(left.extract_if(.., |process| !process.is_running()));
        left.len() == 1
    });
    tarpit.let_go();
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
fn a_project_whose_store_is_stuck_does_not_keep_the_others_waiting() {
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
    // It ends by itself, with the gate still closed.
    let answer = wake_up.end();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["a-stuck"].0, "error", "{decided:?}");
    assert!(decided["a-stuck"].1.contains("has kept the store from being written"), "{decided:?}");
    for n in 0..3 {
        assert_eq!(decided[&format!("b{n}")].0, "started", "{decided:?}");
    }
    drop(gate);
    // The next one finds what that one left.
    until("it is served", || {
        machine.wake_up(&[]);
        stuck.status("A") == "completed"
    });
}

#[test]
fn a_project_that_does_not_answer_at_all_is_left_behind_at_the_deadline() {
    let machine = Machine::new();
    let mute = machine.project("a-mute");
    let other = machine.project("other");
    other.task("A", &["mark begun", "wait go"]);
    let _tarpit = Tarpit::of(&mute);
    let answer = machine.run(&["--json", "runners", "wakeup", "--timeout", "10s"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["a-mute"], ("error".to_owned(), "it did not answer within 10s".to_owned()));
    assert_eq!(decided["other"].0, "started", "{decided:?}");
    machine.wait_for("begun");
}

#[test]
fn a_runner_that_cannot_beat_because_the_store_is_stuck_is_not_killed() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.runner(&[]);
    machine.wait_for("begun");
    let gate = project.hold_writers();
    let stale = || project.ok(&["runners", "wakeup", "--dry-run"])["results"][0]["decision"] == "restarted";
    until("it has been silent for too long", stale);
    let answer = machine.run(&["--json", "runners", "wakeup"]);
    let decided = decisions(&answer.json()["data"]);
    assert_eq!(decided["p"].0, "error", "{decided:?}");
    assert!(decided["p"].1.contains("has kept the store from being written"), "{decided:?}");
    assert!(crate::processes::is_alive(pid));
    drop(gate);
    machine.give("go");
    project.wait_until("A", "completed");
}

#[test]
fn whoever_keeps_the_directory_locked_does_not_keep_the_projects_from_being_served() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    // Stopped in the middle of writing to it, and inside its gate.
    let gate = machine.home().join("tenure.gate.lock");
    let gate = File::options().read(true).write(true).create(true).truncate(false).open(gate).unwrap();
    gate.lock().unwrap();
    let writer = rusqlite::Connection::open(machine.home().join("tenure.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE known_projects SET last_seen_at = 1;").unwrap();
    let answer = machine.run(&["--json", "runners", "wakeup", "--timer", "cron"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(decisions(&answer.json()["data"])["p"].0, "started", "{answer:?}");
    assert!(answer.err.contains("cannot record the timer's call"), "{answer:?}");
    machine.wait_for("begun");
}

#[test]
fn a_runner_that_hangs_on_its_way_to_the_store_is_killed_although_nobody_can_write() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun", "wait go"]);
    let pid = project.runner(&[]);
    machine.wait_for("begun");
    // It stands first in line when it stops, and keeps everybody behind it waiting.
    let gate = project.hold_writers();
    let writer = || {
        let table = std::fs::read_to_string("/proc/locks").unwrap();
        let queue = project.database().with_extension("queue.lock");
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(queue).unwrap());
        table.lines().any(|line| line.contains(&format!(" {pid} ")) && line.contains(&format!(":{inode} ")))
    };
    until("it stands in line", writer);
    crate::processes::signal(pid, Signal::STOP);
    until("it has stopped", || crate::processes::state(pid) == Some('T'));
    drop(gate);
    crate::chart::make_silent(&project);
    let decided = machine.wake_up(&[]);
    assert_eq!(decided["p"].0, "restarted", "{decided:?}");
    assert!(!crate::processes::is_alive(pid));
    machine.give("go");
    project.wait_until("A", "completed");
}
