//! A claim that was committed, but whose answer was lost together with the connection to the server.

use tenure_testkit::cli::{Running, until};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::{Cut, Proxy};

use crate::project::Project;

#[test]
fn a_task_that_was_granted_without_an_answer_is_returned_and_worked_on() {
    let project = Project::new();
    let cluster = Cluster::shared();
    let proxy = Proxy::to(cluster.port());
    let args = ["--timeout", "1s", "runners", "start", "--foreground", "--idle-timeout", "1h"];
    let mut command = project.command(&args);
    command.env("TENURE_STORE", cluster.tcp_url("tenure", proxy.port()));
    let runner = Running::start(command);
    project.wait_for_log(runner.pid(), "Going idle");

    let says = |text: &str, times: usize| {
        until(text, || project.log(runner.pid()).matches(text).count() == times);
    };
    // Another commit of the runner may be cut instead of its claim, such as a heartbeat.
    let lost = (1..=20).any(|round| {
        let task = format!("A{round}");
        // The open connection carries one commit, and no new one gets through.
        proxy.hold();
        proxy.cut(Cut::After, 1);
        project.task(&task, &["mark a"]);
        says("The store does not answer", round);
        let granted = project.status(&task) == "in_progress";
        proxy.cut(Cut::Never, 1);
        proxy.release();
        project.wait_until(&task, "completed");
        says("The store answers again", round);
        granted
    });
    assert!(lost, "no claim was cut");
    project.ok(&["runners", "stop"]);
    assert_eq!(runner.end().code, Some(0));
}
