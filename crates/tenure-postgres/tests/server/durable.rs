//! What was told lasts, also if the power goes right after.

use tenure_core::Result;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Durability, EventFilter, Store, TaskLookup, Tx};
use tenure_core::task::TaskStatus;
use tenure_testkit::postgres::Cluster;

use crate::scene::{add_tasks, claim_next, create, finish, granted, open};

/// A server that writes nothing to the disk unless somebody waits for it.
const LAZY: [&str; 2] = ["wal_writer_delay = 10s", "wal_writer_flush_after = 1GB"];

const CLAIMANTS: usize = 4;

fn tell(tx: &mut dyn Tx) -> Result<()> {
    tx.append(NewEvent::new(EventKind::AgentJoined, "a"))
}

fn tell_and_ring(tx: &mut dyn Tx) -> Result<()> {
    tx.ring("nobody");
    tell(tx)
}

fn joined(store: &dyn Store) -> usize {
    let all = EventFilter { limit: 1000, ..EventFilter::default() };
    let events = store.read(|view| view.events(&all)).unwrap();
    events.iter().filter(|event| event.kind == EventKind::AgentJoined).count()
}

fn what_was_told_is_there_after_the_power_went(settings: &[&str]) {
    let cluster = Cluster::private(settings);
    let (store, _) = create(&cluster.url());
    let store: &dyn Store = &store;
    add_tasks(store, 30);
    let (mut told, mut rung) = (Vec::new(), 0);
    for round in 0..5 {
        let grants: Vec<_> =
            (0..CLAIMANTS).map(|n| claim_next(store, &format!("a{n}")).unwrap().unwrap()).collect();
        told.extend(grants.iter().map(|grant| grant.lease.fence.number()));
        finish(store, &grants[round % 4]).unwrap();
        if round % 2 == 1 {
            // Whoever rings somebody ends its turn before the disk has it.
            store.write(Durability::Power, tell_and_ring).unwrap();
            rung += 1;
        }
        cluster.stop_immediately();
        cluster.start();
        assert_eq!(joined(store), CLAIMANTS + rung, "an event was told and is gone");
        assert_eq!(granted(store), told, "a grant was told and is gone");
        let name = &grants[round % 4].task.key;
        let found = store.read(|view| view.find_tasks(TaskLookup::Key(name), 1)).unwrap();
        assert_eq!(found[0].status, TaskStatus::Completed, "a finish was told and is gone");
    }
}

#[test]
fn a_grant_and_a_finish_that_were_told_survive_the_loss_of_power() {
    what_was_told_is_there_after_the_power_went(&LAZY);
}

#[test]
fn they_do_so_on_a_server_that_is_told_not_to_wait_for_the_disk() {
    what_was_told_is_there_after_the_power_went(&[LAZY[0], LAZY[1], "synchronous_commit = off"]);
}

#[test]
fn an_answer_lasts_that_rests_on_what_another_has_done() {
    let cluster = Cluster::private(&LAZY);
    let (one, project) = create(&cluster.url());
    let other = open(&cluster.url(), &project);
    let (one, other): (&dyn Store, &dyn Store) = (&one, &other);
    for round in 1..4 {
        // As if it were killed before the disk had it.
        one.write(Durability::Process, tell).unwrap();
        let all = EventFilter { limit: 1000, ..EventFilter::default() };
        let seen = other.write(Durability::Power, |tx| tx.events(&all)).unwrap();
        assert_eq!(seen.len(), round);
        cluster.stop_immediately();
        cluster.start();
        assert_eq!(joined(other), round, "somebody was told of it");
    }
}
