//! What was told lasts, also if the power goes right after.

use tenure_core::store::{Store, TaskLookup};
use tenure_core::task::TaskStatus;
use tenure_testkit::postgres::Cluster;

use crate::scene::{add_tasks, claim_next, create, finish, granted};

/// A server that writes nothing to the disk unless somebody waits for it.
const LAZY: [&str; 2] = ["wal_writer_delay = 10s", "wal_writer_flush_after = 1GB"];

fn what_was_told_is_there_after_the_power_went(settings: &[&str]) {
    let cluster = Cluster::private(settings);
    let (store, _) = create(&cluster.url());
    let store: &dyn Store = &store;
    add_tasks(store, 30);
    let mut told = Vec::new();
    for round in 0..5 {
        let grants: Vec<_> = (0..4).map(|n| claim_next(store, &format!("a{n}")).unwrap().unwrap()).collect();
        told.extend(grants.iter().map(|grant| grant.lease.fence.number()));
        finish(store, &grants[round % 4]).unwrap();
        cluster.stop_immediately();
        cluster.start();
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
