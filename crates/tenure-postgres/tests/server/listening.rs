//! Doorbells on PostgreSQL.

use std::time::{Duration, Instant};

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::store::{Durability, Store};
use tenure_postgres::Doorbell;
use tenure_testkit::fixture::new_task;
use tenure_testkit::postgres::{Cluster, sql};

use crate::scene::{add_tasks, create, open};

/// How long it took until the bell rang.
fn heard(bell: &Doorbell) -> Option<Duration> {
    let begun = Instant::now();
    let mut byte = [0];
    while begun.elapsed() < Duration::from_secs(20) {
        if rustix::io::read(bell.fd(), &mut byte).is_ok() {
            return Some(begun.elapsed());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    None
}

fn ring(store: &dyn Store, bell: &Doorbell) {
    let address = bell.address();
    let ring = |tx: &mut dyn tenure_core::store::Tx| {
        tx.ring(&address);
        Ok(())
    };
    store.write(Durability::Process, ring).unwrap();
}

#[test]
fn a_ring_is_heard_while_the_waiter_sleeps_and_only_after_the_commit() {
    let cluster = Cluster::shared();
    let (waiter, project) = create(&cluster.url());
    let bell = waiter.doorbell().unwrap();
    let other = open(&cluster.url(), &project);
    let other: &dyn Store = &other;
    let failed = other.write::<()>(Durability::Process, |tx| {
        tx.ring(&bell.address());
        Err(tenure_core::Error::store("no"))
    });
    assert!(failed.is_err());
    std::thread::sleep(Duration::from_millis(100));
    let mut byte = [0];
    assert!(
        rustix::io::read(bell.fd(), &mut byte).is_err(),
        "a transaction that is rolled back does not ring"
    );
    ring(other, &bell);
    assert!(heard(&bell).is_some());
}

#[test]
fn a_store_with_a_doorbell_can_still_read_and_write() {
    let cluster = Cluster::shared();
    let (waiter, _) = create(&cluster.url());
    let bell = waiter.doorbell().unwrap();
    let waiter: &dyn Store = &waiter;
    for _ in 0..20 {
        waiter.read(|view| view.count_tasks()).unwrap();
        ring(waiter, &bell);
    }
    assert!(heard(&bell).is_some());
}

#[test]
fn the_doorbells_of_a_store_ring_separately_and_share_one_connection() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let url = cluster.url_of(&database);
    let (waiter, project) = create(&url);
    let (first, second) = (waiter.doorbell().unwrap(), waiter.doorbell().unwrap());
    let follower = waiter.follow().unwrap();
    let other = open(&url, &project);
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND pid <> pg_backend_pid()";
    assert_eq!(cluster.sql(&database, connections), "2", "one of each store");
    let rung = |bell: &Doorbell| rustix::io::read(bell.fd(), &mut [0_u8]).is_ok();
    for (bell, silent) in [(&first, &second), (&second, &first)] {
        ring(&other, bell);
        assert!(heard(bell).is_some());
        assert!(!rung(silent), "only the doorbell that was rung");
    }
    // The notification of a change comes through the same connection.
    follower.silence();
    waiter.ask_for_notification().unwrap();
    add_tasks(&other, 1);
    assert!(heard(&follower).is_some());
    // Dropping one doorbell does not affect the others.
    drop(first);
    ring(&other, &second);
    assert!(heard(&second).is_some());
    let third = waiter.doorbell().unwrap();
    let waiter: &dyn Store = &waiter;
    ring(waiter, &third);
    assert!(heard(&third).is_some());
}

#[test]
fn a_server_that_stops_wakes_its_waiters_and_rings_arrive_after_a_restart() {
    let cluster = Cluster::private(&["fsync=off"]);
    let (waiter, project) = create(&cluster.url());
    let bell = waiter.doorbell().unwrap();
    let other = open(&cluster.url(), &project);
    cluster.stop_immediately();
    assert!(heard(&bell).is_some(), "the end of the connection wakes the waiter");
    cluster.start();
    let store: &dyn Store = &waiter;
    store.read(|view| view.count_tasks()).unwrap();
    bell.silence();
    ring(&other, &bell);
    assert!(heard(&bell).is_some());
}

#[test]
fn a_server_that_refuses_a_notification_does_not_fail_the_change() {
    let cluster = Cluster::shared();
    let database = cluster.url_of(&cluster.new_database());
    let (_, project) = create(&database);
    sql(
        &database,
        "CREATE SCHEMA full_queue;
         CREATE FUNCTION full_queue.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$",
    );
    let separator = if database.contains('?') { '&' } else { '?' };
    let url = format!("{database}{separator}options=-c%20search_path%3Dfull_queue%2Cpg_catalog");
    let store = open(&url, &project);
    let store: &dyn Store = &store;
    let added = store.write(Durability::Power, |tx| {
        tx.ring("tenure_0123");
        let id = TaskId::new("00000001-0000-4000-8000-000000000000");
        let task = new_task(&id, "K1", None, 1);
        tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, "test").task(&id))
    });
    added.unwrap();
    assert_eq!(store.read(|view| view.count_tasks()).unwrap().len(), 1);
}
