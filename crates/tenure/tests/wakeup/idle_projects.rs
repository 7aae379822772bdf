//! Wake-up remembers an idle project by the state of its files and does not open it again until they change.

use std::path::Path;
use std::time::Duration;

use tenure_testkit::cli::{Project, Running, until};

use crate::machine::{Machine, slow};

/// Makes the files that wake-up compares a minute older, because it trusts no file that was written in the last seconds.
pub(crate) fn age_files(folder: &Path) {
    for name in ["tenure.db", "tenure.db-wal", "config.yaml"] {
        if let Ok(file) = std::fs::File::options().write(true).open(folder.join(name)) {
            let written = file.metadata().unwrap().modified().unwrap();
            file.set_modified(written - Duration::from_mins(1)).unwrap();
        }
    }
}

fn age_all(machine: &Machine, project: &Project) {
    age_files(&project.root().join(".tenure"));
    age_files(&machine.tenure_home());
}

fn known(machine: &Machine) -> Vec<String> {
    let conn = rusqlite::Connection::open(machine.tenure_home().join("tenure.db")).unwrap();
    let mut rows = conn.prepare("SELECT path FROM idle_projects").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Runs a wake-up after which the project is remembered as idle.
fn remember(machine: &Machine, project: &Project) {
    age_all(machine, project);
    machine.wake_up(&[]);
    assert_eq!(known(machine), [project.root().to_string_lossy()]);
}

#[test]
fn a_project_that_is_remembered_as_idle_is_served_when_a_task_is_added() {
    let machine = Machine::new();
    let project = machine.project("p");
    remember(&machine, &project);
    project.task("A", &["mark begun"]);
    // A change of the files counts, not their age.
    age_all(&machine, &project);
    assert_eq!(machine.wake_up(&[])["p"].0, "started");
    machine.wait_for("begun");
    project.wait_until("A", "completed");
}

#[test]
fn a_claim_that_expires_is_noticed_although_no_file_has_changed() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "8s"]);
    remember(&machine, &project);
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    until("the claim has expired and the work begins", || machine.wake_up(&[])["p"].0 == "started");
    machine.wait_for("begun");
}

/// The wall clock of one wake-up must not affect the next one.
#[test]
fn a_claim_that_expires_is_noticed_after_a_wake_up_whose_clock_was_wrong() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    project.ok(&["tasks", "claim", "A", "--agent", "bob", "--ttl", "8s"]);
    age_all(&machine, &project);
    let wakeup = machine.skew(&machine.command(&["--json", "runners", "wakeup"]), "+2h");
    Running::start(wakeup).end().data();
    assert_eq!(known(&machine), [project.root().to_string_lossy()]);
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    until("the claim has expired and the work begins", || machine.wake_up(&[])["p"].0 == "started");
    machine.wait_for("begun");
}

#[test]
fn a_project_with_a_live_holder_is_not_remembered() {
    // With long heartbeat intervals, so that no heartbeat changes the files.
    let machine = Machine::with(&slow());
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    let _holder = project.spawn(&["tasks", "run", "A", "--agent", "bob", "--", "sleep", "600"]);
    project.wait_until("A", "in_progress");
    age_all(&machine, &project);
    assert_eq!(machine.wake_up(&[])["p"].0, "idle");
    assert!(known(&machine).is_empty(), "the death of the holder would change no file");
}
