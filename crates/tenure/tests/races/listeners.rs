//! Many waiters on a server that has few connections.

use tenure_testkit::cli::{Running, until};
use tenure_testkit::postgres::Cluster;

use crate::harness::Project;

const WAITERS: usize = 14;

#[test]
fn more_waiters_than_connections_leave_the_server_usable_and_are_served() {
    let cluster = Cluster::private(&["fsync=off", "max_connections = 12"]);
    let project = Project::bare_on(Some(cluster.url()));
    project.ok(&["init"]);
    let project = project.configured("store: {maxListeners: 3}\nlocking: {pollInterval: 1s}");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let names: Vec<String> = (0..WAITERS).map(|n| format!("w{n}")).collect();
    let waiters: Vec<Running> = names
        .iter()
        .map(|name| project.spawn(&["tasks", "claim", "F1", "--wait", "--agent", name]))
        .collect();
    project.wait_for_queue("F1", u64::try_from(WAITERS).unwrap());
    // A poll takes less than that.
    let kept = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                AND backend_start < now() - interval '3 s'";
    until("only three keep a connection", || cluster.sql("postgres", kept) == "3");
    // The holder can always renew.
    for _ in 0..5 {
        project.ok(&["tasks", "renew", "F1", "--agent", "first"]);
    }
    // Each is served, whether it listens or polls.
    project.ok(&["tasks", "release", "F1", "--agent", "first"]);
    let mut left: Vec<(String, Running)> = names.into_iter().zip(waiters).collect();
    while !left.is_empty() {
        let mut holder = None;
        until("the next waiter has the task", || {
            holder = left.iter_mut().position(|(_, waiter)| !waiter.is_running());
            holder.is_some()
        });
        let (name, waiter) = left.remove(holder.unwrap());
        assert_eq!(waiter.end().code, Some(0));
        project.ok(&["tasks", "release", "F1", "--agent", &name]);
    }
}

#[test]
fn more_message_waiters_than_connections_leave_the_server_usable_and_get_their_message() {
    let cluster = Cluster::private(&["fsync=off", "max_connections = 12"]);
    let project = Project::bare_on(Some(cluster.url()));
    project.ok(&["init"]);
    let project = project.configured("store: {maxListeners: 3}\nlocking: {pollInterval: 1s}");
    let waiters: Vec<Running> =
        (0..WAITERS).map(|_| project.spawn(&["msg", "wait", "--to", "eve", "--for", "5m"])).collect();
    let kept = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                AND backend_start < now() - interval '3 s'";
    until("only three keep a connection", || cluster.sql("postgres", kept) == "3");
    project.ok(&["msg", "send", "--to", "eve", "-m", "hello"]);
    for waiter in waiters {
        assert_eq!(waiter.end().code, Some(0));
    }
}
