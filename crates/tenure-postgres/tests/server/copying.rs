//! Copying a project to a server that other projects use at the same time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::store::{Counters, Movable};
use tenure_testkit::postgres::{Cluster, sql};

use crate::scene::create;

#[test]
fn a_copy_never_sets_the_shared_sequences_back() {
    let cluster = Cluster::shared();
    let url = cluster.url_of(&cluster.new_database());
    create(&url);
    let (url, ended) = (&url, &AtomicBool::new(false));
    let draw = move || {
        let mut numbers: Vec<i64> = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let drawn = sql(url, "SELECT nextval('tenure.fences') FROM generate_series(1, 20000)");
            numbers.extend(drawn.lines().map(|number| number.parse::<i64>().unwrap()));
        }
        numbers
    };
    let drawn = std::thread::scope(|scope| {
        let others: Vec<_> = (0..2).map(|_| scope.spawn(draw)).collect();
        for round in 0..30 {
            let (store, _) = create(url);
            let counters = Counters { next_task: 1, last_event: 0, last_fence: round * 100, last_number: 0 };
            store.transfer_with(&mut |tx| tx.raise_counters(counters)).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
        others.into_iter().flat_map(|other| other.join().unwrap()).collect::<Vec<_>>()
    });
    let distinct: BTreeSet<i64> = drawn.iter().copied().collect();
    assert_eq!(distinct.len(), drawn.len(), "no number is drawn twice");
    let (store, _) = create(url);
    let last_fence = sql(url, "SELECT last_value FROM tenure.fences").parse::<i64>().unwrap() + 1000;
    let counters = Counters { next_task: 1, last_event: 700, last_fence, last_number: 900 };
    store.transfer_with(&mut |tx| tx.raise_counters(counters)).unwrap();
    let next = sql(
        url,
        "SELECT nextval('tenure.fences'), nextval('tenure.numbers'), nextval('tenure.event_numbers')",
    );
    assert_eq!(next, format!("{}|901|701", last_fence + 1), "they are raised to the numbers of the copy");
}
