//! Runners and waiters live through a restart of the server.

use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use tenure_testkit::cli::{Running, until};

use crate::harness::Project;

fn project(url: String) -> Project {
    let project = Project::bare_on(Some(url));
    project.init(&[]);
    let project = project.configured(
        "locking: {pollInterval: 1s}\n\
         runners: {preset: mine, heartbeatInterval: 1s, staleTimeout: 30s, killGrace: 1s}\n\
         presets: {mine: {command: [./agent.sh]}}",
    );
    let script = project.root().join("agent.sh");
    std::fs::write(&script, "#!/bin/sh\necho begun >> journal\nsleep 4\necho ended >> journal\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    project
}

fn journal(project: &Project) -> String {
    std::fs::read_to_string(project.root().join("journal")).unwrap_or_default()
}

#[test]
fn a_runner_goes_on_with_its_task_after_the_server_was_away() {
    let cluster = Cluster::private(&[]);
    let proxy = Proxy::to(cluster.port());
    let project = project(cluster.tcp_url("tenure", proxy.port()));
    project.add("F", 2);
    let runner = project.spawn(&["--json", "runners", "start", "--foreground", "--ttl", "60s"]);
    until("the agent works", || journal(&project) == "begun\n");
    cluster.stop_immediately();
    let before = proxy.refusals();
    until("the runner has tried twice to reach the server", || proxy.refusals() >= before + 2);
    cluster.start();
    let answer = runner.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(journal(&project), "begun\nended\nbegun\nended\n", "no attempt was lost or made twice");
    assert_eq!(project.ok(&["tasks", "list", "--status", "completed"])["total"], 2);
    assert_eq!(project.ok(&["tasks", "show", "F1"])["task"]["attempts"], 0);
}

#[test]
fn a_waiter_is_served_after_the_server_was_away() {
    let cluster = Cluster::private(&[]);
    let project = project(cluster.url());
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "ann"]);
    let waiter: Running = project.spawn(&["--json", "tasks", "claim", "F1", "--agent", "bob", "--wait"]);
    project.wait_for_queue("F1", 1);
    cluster.stop_immediately();
    cluster.start();
    project.ok(&["tasks", "release", "F1", "--agent", "ann"]);
    let answer = waiter.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_command_says_that_the_server_is_away_and_no_password() {
    let cluster = Cluster::private(&["fsync=off"]);
    let project = project(cluster.url());
    cluster.stop_immediately();
    let mut command = project.command(&["--timeout", "1s", "status"]);
    command.env("TENURE_STORE", cluster.url().replace("tenure@", "tenure:s3cret@"));
    let answer = Running::start(command).end();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let said = format!("{answer:?}");
    assert!(said.contains("cannot be reached") && !said.contains("s3cret"), "{said}");
}
