//! The cost of a wake-up does not grow with the history of a project.

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tenure_testkit::cli::{Project, Running, processes};

use crate::machine::Machine;

/// How many bytes a wake-up reads, with the decision `running`.
fn bytes_read(project: &Project) -> u64 {
    let running = Running::start(project.command(&["--json", "runners", "wakeup", "--dry-run"]));
    let pid = processes::os_pid(running.pid());
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let counters = std::fs::read_to_string(format!("/proc/{}/io", running.pid())).unwrap();
    let read = counters.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap();
    let answer = running.end();
    assert_eq!(answer.data()["results"][0]["decision"], "running");
    read
}

#[test]
fn a_wake_up_does_not_read_the_history_of_a_project() {
    let machine = Machine::new();
    let project = machine.project("p");
    project.task("A", &["print done"]);
    project.detached_runner(&["--once"]);
    project.wait_until("A", "completed");
    project.task("B", &["mark begun", "wait go"]);
    project.detached_runner(&[]);
    machine.wait_for("begun");
    let before = bytes_read(&project);
    project.sql(
        "CREATE TEMP TABLE lease AS SELECT * FROM leases WHERE ended_at IS NOT NULL LIMIT 1;
         CREATE TEMP TABLE runner AS SELECT * FROM runners WHERE completed_at IS NOT NULL LIMIT 1;
         CREATE TEMP TABLE number AS
             WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 20000) SELECT n FROM up;
         CREATE TEMP TRIGGER copy AFTER DELETE ON number BEGIN
             UPDATE lease SET fence = 1000000 + old.n, lease_id = 'H' || old.n;
             INSERT INTO leases SELECT * FROM lease;
             UPDATE runner SET id = 'H' || old.n;
             INSERT INTO runners SELECT * FROM runner;
         END;
         BEGIN; DELETE FROM number; COMMIT; PRAGMA wal_checkpoint;",
    );
    let after = bytes_read(&project);
    let grown = project.root().join(".tenure/tenure.db").metadata().unwrap().len();
    assert!(grown > 4 << 20, "{grown}");
    assert!(after < before + (512 << 10), "{before} bytes without history, {after} with it");
    machine.give("go");
    project.wait_until("B", "completed");
}
