//! A follower of the feed asks for what comes after the last event that it saw, and must not miss one that commits late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use postgres::{Client, NoTls};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Durability, EventFilter, Store};
use tenure_testkit::postgres::Cluster;
use uuid::Uuid;

use crate::scene::{add_tasks, claim_next, create, finish, open};

/// The numbers of the events after `since`.
fn events_since(store: &dyn Store, since: i64) -> Vec<i64> {
    let filter = EventFilter { since, limit: 1000, ..EventFilter::default() };
    store.read(|view| view.events(&filter)).unwrap().iter().map(|event| event.seq).collect()
}

#[test]
fn a_follower_sees_every_event_once_while_many_claim_and_write() {
    const CLAIMANTS: usize = 4;
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, 120);
    let (url, over) = (cluster.url(), AtomicBool::new(false));
    let seen: Vec<i64> = std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let store = open(&url, &project);
            let mut seen: Vec<i64> = Vec::new();
            loop {
                let last = over.load(Ordering::Relaxed);
                let more = events_since(&store, seen.last().copied().unwrap_or(0));
                if last && more.is_empty() {
                    return seen;
                }
                seen.extend(more);
            }
        });
        let workers: Vec<_> = (0..CLAIMANTS)
            .map(|n| {
                let (url, project) = (&url, &project);
                scope.spawn(move || {
                    let store = open(url, project);
                    let mut count = 0;
                    while let Some(grant) = claim_next(&store, &format!("a{n}")).unwrap() {
                        count += 1;
                        if count % 5 == 0 {
                            finish(&store, &grant).unwrap();
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        follower.join().unwrap()
    });
    assert_eq!(seen, events_since(&store, 0));
}

#[test]
fn a_follower_waits_for_an_event_with_a_lower_number_that_commits_later() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    let since = events_since(&store, 0).last().copied().unwrap_or(0);
    // What a claim does, but slowly.
    let (high, low) = Uuid::parse_str(&project).unwrap().as_u64_pair();
    let turn = i64::from_ne_bytes((high ^ low).to_ne_bytes());
    let mut slow = Client::connect(&cluster.url(), NoTls).unwrap();
    slow.batch_execute(&format!(
        "BEGIN; SELECT pg_advisory_xact_lock_shared({turn});
         INSERT INTO tenure.events (project, seq, at, kind, actor)
         VALUES ('{project}', nextval('tenure.event_numbers'), 0, 'agent.joined', 'slow')"
    ))
    .unwrap();
    // An event with a higher number that commits earlier.
    let mut quick = Client::connect(&cluster.url(), NoTls).unwrap();
    quick
        .batch_execute(&format!(
            "BEGIN; SELECT pg_advisory_xact_lock_shared({turn});
             INSERT INTO tenure.events (project, seq, at, kind, actor)
             VALUES ('{project}', nextval('tenure.event_numbers'), 0, 'agent.joined', 'quick'); COMMIT"
        ))
        .unwrap();
    let (sender, receiver) = mpsc::channel();
    let seen = std::thread::scope(|scope| {
        let (url, project) = (cluster.url(), &project);
        scope.spawn(move || sender.send(events_since(&open(&url, project), since)).unwrap());
        assert!(
            receiver.recv_timeout(Duration::from_millis(300)).is_err(),
            "the slow event may still commit"
        );
        slow.batch_execute("COMMIT").unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).unwrap()
    });
    assert_eq!(seen.len(), 2);
    // The follower only reads, so it blocks no writer.
    let store: &dyn Store = &store;
    store.write(Durability::Process, |tx| tx.append(NewEvent::new(EventKind::AgentJoined, "a"))).unwrap();
    assert_eq!(events_since(store, seen[1]).len(), 1);
}
