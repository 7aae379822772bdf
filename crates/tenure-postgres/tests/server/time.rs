//! Only the server's clock counts.

use std::time::Duration;

use tenure_core::store::{Durability, Store};
use tenure_core::{Clock, SystemClock};
use tenure_testkit::postgres::Cluster;

use crate::scene::{create, open};

#[test]
fn the_time_of_a_transaction_is_read_when_its_turn_begins() {
    let cluster = Cluster::shared();
    let (first, project) = create(&cluster.url());
    let second = open(&cluster.url(), &project);
    let (begun, has_begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let slow = scope.spawn(move || {
            let first: &dyn Store = &first;
            first
                .write(Durability::Power, |_| {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(500));
                    Ok(SystemClock.now())
                })
                .unwrap()
        });
        has_begun.recv().unwrap();
        let second: &dyn Store = &second;
        let seen = second.write(Durability::Power, |tx| Ok(tx.now())).unwrap();
        let over = slow.join().unwrap();
        assert!(seen >= over, "the second saw {seen}, but the first was at work until {over}");
    });
}
