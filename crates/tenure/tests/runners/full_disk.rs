//! A disk that is full while an agent ends: its outcome is written when there is space again (F6).

use tenure_testkit::SmallDisk;
use tenure_testkit::cli::{PATIENT, Running, Sandbox, skip, until};

use crate::SUITE;

#[test]
fn a_runner_on_a_full_disk_waits_and_goes_on() {
    let sandbox = Sandbox::new(SUITE);
    let Some(disk) = SmallDisk::mount(&sandbox.path("projects"), 4096) else {
        skip("mounting a small file system needs root; the full disk was not tested");
        return;
    };
    let project = sandbox.project("shop");
    project.configure(&format!("{}{PATIENT}", sandbox.agent_presets()));
    project.task("A", &["mark at-work", "wait go"]);
    project.task("B", &["mark next"]);
    let runner: Running = project.runner(&["--timeout", "2s"]);
    project.wait_for("at-work");
    // The log keeps its size, and a write that fits into it needs no space.
    let database = rusqlite::Connection::open(project.database()).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(database);
    let filler = disk.fill();
    project.give("go");
    project.wait_for_log(runner.pid(), "The store does not answer");
    let outcomes = project.tenure_home().join("outcomes");
    let kept = || std::fs::read_dir(&outcomes).map_or(0, |folders| folders.flatten().count());
    until("the outcome is kept outside the disk", || kept() == 1);
    std::fs::remove_file(filler).unwrap();
    project.wait_for("next");
    assert_eq!(runner.end().code, Some(0));
    for task in ["A", "B"] {
        assert_eq!(project.status(task), "completed", "{task}");
        assert_eq!(project.moves(task, "in_progress"), 1, "{task} was worked on once");
    }
    assert_eq!(kept(), 0);
}
