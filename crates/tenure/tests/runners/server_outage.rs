//! A PostgreSQL server that is stopped while agents end: their outcomes are written when it is back (F6).

use tenure_testkit::cli::{PATIENT, Sandbox, until};
use tenure_testkit::postgres::Cluster;

use crate::SUITE;

#[test]
fn an_outcome_outlasts_a_restart_of_the_server() {
    let cluster = Cluster::private(&["fsync=off"]);
    let sandbox = Sandbox::on(SUITE, Some(cluster.url()));
    let project = sandbox.project("shop");
    project.configure(&format!("{}{PATIENT}", sandbox.agent_presets()));
    project.task("A", &["mark at-work", "wait go"]);
    project.task("B", &["mark next"]);
    let runner = project.runner(&["--timeout", "2s"]);
    project.wait_for("at-work");
    cluster.stop_immediately();
    project.give("go");
    project.wait_for_log(runner.pid(), "The store does not answer");
    cluster.start();
    project.wait_for("next");
    let pid = runner.pid();
    assert_eq!(runner.end().code, Some(0));
    let log = project.log(pid);
    assert_eq!(log.matches("The store answers again").count(), 1, "{log}");
    for task in ["A", "B"] {
        assert_eq!(project.status(task), "completed", "{task}");
        assert_eq!(project.moves(task, "in_progress"), 1, "{task} was worked on once");
    }
    let outcomes = project.tenure_home().join("outcomes");
    until("no outcome is kept any more", || {
        std::fs::read_dir(&outcomes).map_or(0, |folders| folders.flatten().count()) == 0
    });
}
