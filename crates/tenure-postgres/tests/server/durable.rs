//! An acknowledged change survives a power failure right after it.

use tenure_core::Result;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Durability, EventFilter, Store, TaskLookup, Tx};
use tenure_core::task::TaskStatus;
use tenure_testkit::postgres::Cluster;

use crate::scene::{add_tasks, claim_next, create, finish, granted, open};

/// A server that writes nothing to the disk unless a client waits for it.
const LAZY: [&str; 2] = ["wal_writer_delay = 10s", "wal_writer_flush_after = 1GB"];

const CLAIMANTS: usize = 4;

fn append_event(tx: &mut dyn Tx) -> Result<()> {
    tx.append(NewEvent::new(EventKind::AgentJoined, "a"))
}

fn append_event_and_ring(tx: &mut dyn Tx) -> Result<()> {
    tx.ring("nobody");
    append_event(tx)
}

fn joined(store: &dyn Store) -> usize {
    let all = EventFilter { limit: 1000, ..EventFilter::default() };
    let events = store.read(|view| view.events(&all)).unwrap();
    events.iter().filter(|event| event.kind == EventKind::AgentJoined).count()
}

fn assert_acknowledged_changes_survive(settings: &[&str]) {
    let cluster = Cluster::private(settings);
    let (store, _) = create(&cluster.url());
    let store: &dyn Store = &store;
    add_tasks(store, 30);
    let (mut acknowledged, mut rung) = (Vec::new(), 0);
    for round in 0..5 {
        let grants: Vec<_> =
            (0..CLAIMANTS).map(|n| claim_next(store, &format!("a{n}")).unwrap().unwrap()).collect();
        acknowledged.extend(grants.iter().map(|grant| grant.lease.fence.number()));
        finish(store, &grants[round % 4]).unwrap();
        if round % 2 == 1 {
            // A transaction that rings ends its turn before its commit is on the disk.
            store.write(Durability::Power, append_event_and_ring).unwrap();
            rung += 1;
        }
        cluster.stop_immediately();
        cluster.start();
        assert_eq!(joined(store), CLAIMANTS + rung, "an acknowledged event is lost");
        assert_eq!(granted(store), acknowledged, "an acknowledged grant is lost");
        let name = &grants[round % 4].task.key;
        let found = store.read(|view| view.find_tasks(TaskLookup::Key(name), 1)).unwrap();
        assert_eq!(found[0].status, TaskStatus::Completed, "an acknowledged finish is lost");
    }
}

#[test]
fn an_acknowledged_grant_and_finish_survive_a_power_failure() {
    assert_acknowledged_changes_survive(&LAZY);
}

#[test]
fn acknowledged_changes_survive_a_power_failure_with_synchronous_commit_off() {
    assert_acknowledged_changes_survive(&[LAZY[0], LAZY[1], "synchronous_commit = off"]);
}

#[test]
fn an_answer_is_durable_if_it_depends_on_another_clients_commit() {
    let cluster = Cluster::private(&LAZY);
    let (one, project) = create(&cluster.url());
    let other = open(&cluster.url(), &project);
    let (one, other): (&dyn Store, &dyn Store) = (&one, &other);
    for round in 1..4 {
        // As if the client were killed before the commit was on the disk.
        one.write(Durability::Process, append_event).unwrap();
        let all = EventFilter { limit: 1000, ..EventFilter::default() };
        let seen = other.write(Durability::Power, |tx| tx.events(&all)).unwrap();
        assert_eq!(seen.len(), round);
        cluster.stop_immediately();
        cluster.start();
        assert_eq!(joined(other), round, "the other client has seen it");
    }
}

#[test]
fn a_change_that_skips_its_sync_does_not_wait_for_the_disk() {
    let cluster = Cluster::private(&LAZY);
    let (store, _) = create(&cluster.url());
    let store: &dyn Store = &store;
    let is_lost = || {
        let before = joined(store);
        let waiting = |tx: &mut dyn Tx| {
            tx.skip_sync();
            append_event(tx)
        };
        store.write(Durability::Power, waiting).unwrap();
        cluster.stop_immediately();
        cluster.start();
        joined(store) == before
    };
    // The server itself writes to the disk every ten seconds, perhaps just then.
    assert!((0..3).any(|_| is_lost()));
}
