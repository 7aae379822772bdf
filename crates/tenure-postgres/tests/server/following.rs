//! A follower of the feed asks for what comes after the last event that it saw, and must not miss one that commits late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Durability, EventFilter, Store};
use tenure_postgres::Doorbell;
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;
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

fn append(store: &dyn Store) {
    store.write(Durability::Process, |tx| tx.append(NewEvent::new(EventKind::AgentJoined, "a"))).unwrap();
}

fn is_woken(follower: &Doorbell) -> bool {
    rustix::io::read(follower.fd(), &mut [0]).is_ok()
}

/// Waits until a follower is woken.
fn woken(follower: &Doorbell) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if is_woken(follower) {
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    false
}

/// A client of the server that receives the notifications of a project's followers.
fn listening(cluster: &Cluster, project: &str) -> Client {
    let mut client = Client::connect(&cluster.url(), NoTls).unwrap();
    let channel = format!("tenure_follow_{}", project.replace('-', ""));
    client.batch_execute(&format!("LISTEN \"{channel}\"")).unwrap();
    client
}

fn notifications(client: &mut Client) -> usize {
    use postgres::fallible_iterator::FallibleIterator;
    // Earlier notifications arrive before the answer.
    client.batch_execute("SELECT 1").unwrap();
    client.notifications().iter().count().unwrap()
}

#[test]
fn a_reader_that_was_woken_sees_the_change_and_none_is_lost_between_two_requests() {
    const CLAIMANTS: usize = 3;
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, 90);
    let (url, all) = (cluster.url(), std::sync::OnceLock::new());
    let reader = open(&url, &project);
    let follower = reader.follow().unwrap();
    std::thread::scope(|scope| {
        let mut seen: Vec<i64> = events_since(&reader, 0);
        let workers: Vec<_> = (0..CLAIMANTS)
            .map(|n| {
                let (url, project) = (&url, &project);
                scope.spawn(move || {
                    let store = open(url, project);
                    while let Some(grant) = claim_next(&store, &format!("a{n}")).unwrap() {
                        finish(&store, &grant).unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for worker in workers {
                worker.join().unwrap();
            }
            all.set(events_since(&open(&url, &project), 0)).unwrap();
        });
        // Reads only after it was woken.
        while all.get() != Some(&seen) {
            let begun = Instant::now();
            while !is_woken(&follower) && all.get() != Some(&seen) {
                assert!(begun.elapsed() < Duration::from_secs(20), "a change was not notified");
                std::thread::sleep(Duration::from_micros(200));
            }
            follower.silence();
            while let Some(pause) = reader.ask_for_notification().unwrap() {
                std::thread::sleep(pause);
            }
            seen.extend(events_since(&reader, seen.last().copied().unwrap_or(0)));
        }
    });
}

#[test]
fn writers_notify_only_if_a_reader_has_asked_and_then_once() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    let mut listener = listening(cluster, &project);
    append(&store);
    assert_eq!(notifications(&mut listener), 0, "without a reader");
    let reader = open(&cluster.url(), &project);
    let follower = reader.follow().unwrap();
    (&store as &dyn Store).write(Durability::Power, |_| Ok(())).unwrap();
    assert_eq!(notifications(&mut listener), 0, "nothing has changed");
    append(&store);
    assert!(woken(&follower));
    append(&store);
    append(&store);
    assert_eq!(notifications(&mut listener), 1, "until it asks again");
    // A reader that is killed after it has asked.
    while let Some(pause) = reader.ask_for_notification().unwrap() {
        std::thread::sleep(pause);
    }
    drop((reader, follower));
    for _ in 0..3 {
        append(&store);
    }
    assert_eq!(notifications(&mut listener), 1, "one more, and none after it");
}

#[test]
fn there_are_at_most_ten_notifications_a_second_however_many_readers_ask() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    let mut listener = listening(cluster, &project);
    let readers: Vec<_> = (0..3).map(|_| open(&cluster.url(), &project)).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        for reader in &readers {
            reader.ask_for_notification().unwrap();
        }
        append(&store);
    }
    let most = usize::try_from(begun.elapsed().as_millis() / 100).unwrap() + 1;
    let found = notifications(&mut listener);
    assert!((2..=most).contains(&found), "{found} notifications, and at most {most} are allowed");
}

#[test]
fn a_reader_is_woken_when_its_connection_ends() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    let proxy = Proxy::to(cluster.port());
    let reader = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    let follower = reader.follow().unwrap();
    proxy.close();
    proxy.open();
    assert!(woken(&follower));
    while let Some(pause) = reader.ask_for_notification().unwrap() {
        std::thread::sleep(pause);
    }
    follower.silence();
    append(&store);
    assert!(woken(&follower), "it listens again on the new connection");
}
