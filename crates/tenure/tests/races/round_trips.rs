//! How many round trips to the server a command takes.

use tenure_postgres::{Address, OpenOptions, PostgresStore, Surroundings};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::harness::Project;

#[test]
fn claiming_a_task_by_its_key_is_at_most_four_round_trips_after_connecting() {
    let cluster = Cluster::shared();
    let proxy = Proxy::to(cluster.port());
    let url = cluster.tcp_url("tenure", proxy.port());
    let project = Project::bare_on(Some(url.clone()));
    project.ok(&["init"]);
    project.add("K", 3);
    let id = project.id();
    let asks = |work: &dyn Fn()| {
        let before = proxy.asks();
        work();
        proxy.asks() - before
    };
    let connecting = asks(&|| {
        let address = Address::parse(&url, &Surroundings::default()).unwrap();
        drop(PostgresStore::open(address, id, OpenOptions::default()).unwrap());
    });
    for (args, limit) in [
        (&["tasks", "claim", "K1", "--agent", "ann"][..], 4),
        (&["tasks", "next", "--claim", "--agent", "ann"][..], 4),
    ] {
        let claiming = asks(&|| drop(project.ok(args))) - connecting;
        eprintln!("{args:?}: {claiming} round trips after {connecting} to connect");
        assert!(claiming <= limit, "{args:?}: {claiming} round trips");
    }
}
