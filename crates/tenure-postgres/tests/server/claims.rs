//! Claims of what is next share a turn, and each decides as if it were alone.

use std::collections::BTreeSet;

use tenure_core::event::EventKind;
use tenure_core::store::{EventFilter, Store};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::scene::{add_tasks, claim_next, create, finish, granted, open};

const CLIENTS: usize = 8;
const TASKS: usize = 200;

#[test]
fn claims_at_once_take_every_task_once_and_the_feed_tells_them_in_order() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, TASKS);
    let url = cluster.url();
    let grants: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (url, project) = (&url, &project);
                scope.spawn(move || {
                    let store = open(url, project);
                    let mut grants = Vec::new();
                    while let Some(grant) = claim_next(&store, &format!("a{n}")).unwrap() {
                        // Between claims, changes that have the turn to themselves.
                        if grants.len() % 3 == n % 3 {
                            finish(&store, &grant).unwrap();
                        }
                        grants.push(grant);
                    }
                    grants
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let tasks: BTreeSet<_> = grants.iter().map(|grant| grant.task.id.clone()).collect();
    assert_eq!((grants.len(), tasks.len()), (TASKS, TASKS));
    let mut fences: Vec<i64> = grants.iter().map(|grant| grant.lease.fence.number()).collect();
    fences.sort_unstable();
    assert_eq!(granted(&store), fences);
    let store: &dyn Store = &store;
    let filter = EventFilter { limit: 100_000, ..EventFilter::default() };
    let feed = store.read(|view| view.events(&filter)).unwrap();
    let numbers: Vec<i64> = feed.iter().map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
    let acquired = feed.iter().filter(|event| event.kind == EventKind::LeaseAcquired).count();
    assert_eq!(acquired, TASKS);
    let joined = feed.iter().filter(|event| event.kind == EventKind::AgentJoined).count();
    assert_eq!(joined, CLIENTS);
}

#[test]
fn a_claim_is_two_ways_to_the_server_and_back() {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 60);
    let proxy = Proxy::to(cluster.port());
    let store = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    // Statements are prepared when they come a second time, and anew now and then.
    for _ in 0..3 {
        drop(claim_next(&store, "a").unwrap().unwrap());
    }
    let before = proxy.asks();
    for _ in 0..10 {
        drop(claim_next(&store, "a").unwrap().unwrap());
    }
    let ways = proxy.asks() - before;
    assert!(ways <= 23, "{ways} ways for 10 claims");
}
