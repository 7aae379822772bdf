//! How many round trips to the server a command takes.

use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::harness::Project;

/// The request for encryption, and the message that begins a session.
const CONNECTING: u64 = 2;

#[test]
fn a_whole_claim_with_what_it_shows_is_at_most_three_round_trips_after_connecting() {
    let cluster = Cluster::shared();
    let proxy = Proxy::to(cluster.port());
    let url = cluster.tcp_url("tenure", proxy.port());
    let project = Project::bare_on(Some(url.clone()));
    project.ok(&["init"]);
    project.add("K", 3);
    let asks = |work: &dyn Fn()| {
        let before = proxy.asks();
        work();
        proxy.asks() - before
    };
    // K2 has a message and a remark, which its claim shows.
    project.ok(&["tasks", "claim", "K2", "--agent", "bob"]);
    project.ok(&["tasks", "release", "K2", "--agent", "bob", "-m", "later"]);
    project.ok(&["msg", "send", "--task", "K2", "--from", "bob", "-m", "mind the gap"]);
    for (args, limit) in [
        // One of them opens the project. A new agent is registered with the grant.
        (&["tasks", "claim", "K1", "--agent", "ann"][..], 3),
        (&["tasks", "claim", "K2", "--agent", "ann"][..], 3),
        (&["tasks", "next", "--claim", "--agent", "ann"][..], 3),
    ] {
        let claiming = asks(&|| drop(project.ok(args))) - CONNECTING;
        eprintln!("{args:?}: {claiming} round trips after connecting");
        assert!(claiming <= limit, "{args:?}: {claiming} round trips");
    }
}
