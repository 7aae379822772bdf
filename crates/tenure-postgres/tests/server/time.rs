//! The server's clock is the only one.

use std::time::Duration;

use tenure_core::store::{Durability, Store};
use tenure_core::{Clock, SystemClock};
use tenure_testkit::postgres::Cluster;

use crate::scene::{create, open};

#[test]
fn the_time_is_read_when_it_is_our_turn_and_not_when_we_began_to_wait() {
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

#[test]
fn numbers_of_events_are_seen_in_their_order() {
    let cluster = Cluster::shared();
    let (_, project) = create(&cluster.url());
    let url = cluster.url();
    let each = 30;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (url, project) = (&url, &project);
            scope.spawn(move || {
                let store = open(url, project);
                let store: &dyn Store = &store;
                for _ in 0..each {
                    let event =
                        || tenure_core::event::NewEvent::new(tenure_core::event::EventKind::AgentJoined, "a");
                    store.write(Durability::Process, |tx| tx.append(event())).unwrap();
                }
            });
        }
        // Whoever follows the feed asks for what comes after the last it saw, and must not miss one that comes late.
        let store = open(&url, &project);
        let store: &dyn Store = &store;
        let mut seen: Vec<i64> = Vec::new();
        let begun = std::time::Instant::now();
        while seen.len() < 4 * each && begun.elapsed() < Duration::from_mins(1) {
            let filter = tenure_core::store::EventFilter {
                since: seen.last().copied().unwrap_or(0),
                limit: 1000,
                ..Default::default()
            };
            seen.extend(store.read(|view| view.events(&filter)).unwrap().iter().map(|event| event.seq));
        }
        let all: Vec<i64> = (1..=i64::try_from(4 * each).unwrap()).collect();
        assert_eq!(seen, all);
    });
}
