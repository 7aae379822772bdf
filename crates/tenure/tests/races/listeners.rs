//! Many waiters on a server that has few connections.

use rustix::process::Signal;
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

#[test]
fn waiters_without_a_connection_make_none_while_they_wait_and_survive_those_that_have_one() {
    let cluster = Cluster::private(&["fsync=off"]);
    let project = Project::bare_on(Some(cluster.url()));
    project.ok(&["init"]);
    let project = project.configured("store: {maxListeners: 2}\nlocking: {pollInterval: 1s}");
    project.add("F", 1);
    project.ok(&["tasks", "claim", "F1", "--agent", "first"]);
    let names: Vec<String> = (0..8).map(|n| format!("w{n}")).collect();
    let wait = |name: &String| {
        let waiter = project.spawn(&["tasks", "claim", "F1", "--wait", "--agent", name]);
        (name.clone(), waiter)
    };
    let mut left: Vec<(String, Running)> = Vec::new();
    for (n, name) in names.iter().enumerate() {
        left.push(wait(name));
        project.wait_for_queue("F1", u64::try_from(n + 1).unwrap());
    }
    let made = || {
        let sessions = "SELECT sum(sessions) FROM pg_stat_database WHERE datname = 'postgres'";
        cluster.sql("postgres", sessions).parse::<u64>().unwrap()
    };
    let refreshed = || {
        let oldest = "SELECT min(refreshed_at) FROM tenure.tickets";
        cluster.sql("postgres", oldest).parse::<i64>().unwrap()
    };
    // Each waiter has polled several times by then. Without the roster, six of them would have connected each time.
    let (sessions, first) = (made(), refreshed());
    let mut asked = 0;
    until("the tickets of all have been refreshed for ten intervals", || {
        asked += 1;
        refreshed() >= first + 10_000
    });
    let connected = made() - sessions;
    assert!(connected < asked + 20, "{connected} connections were made, {asked} of them by this test");
    assert_eq!(project.store().read(|view| view.count_tickets()).unwrap(), 8, "no ticket was replaced");
    // The first two listen. The others keep their places without them, and the next ones take over.
    for (_, listener) in left.drain(..2) {
        listener.signal(Signal::KILL);
        listener.end();
    }
    project.ok(&["tasks", "release", "F1", "--agent", "first"]);
    for (name, waiter) in left {
        assert_eq!(waiter.end().code, Some(0), "{name} is served in its turn");
        project.ok(&["tasks", "release", "F1", "--agent", &name]);
    }
}
