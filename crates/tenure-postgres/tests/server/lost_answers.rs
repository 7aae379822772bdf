//! A connection that breaks during a commit: the change is made once, and the retry returns the original answer.

use postgres::{Client, NoTls};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::store::{Durability, EventFilter, Store};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::{Cut, Proxy};

use crate::scene::{add_tasks, claim_next, claim_next_and, create, granted, open};

fn every_grant_is_answered_once(cut: Cut, every: u64) {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 40);
    let proxy = Proxy::to(cluster.port());
    let store = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    proxy.cut(cut, every);
    let mut answered: Vec<i64> = Vec::new();
    for n in 0..30 {
        // A known agent shares its turn, which takes another path.
        let name = format!("a{}", n / 3);
        let grant = claim_next(&store, &name).unwrap().unwrap();
        assert_eq!(grant.lease.holder.id, name);
        answered.push(grant.lease.fence.number());
    }
    assert!(proxy.cuts() >= 10, "only {} commits were cut", proxy.cuts());
    assert_eq!(granted(&direct), answered, "the grants match the answers");
}

#[test]
fn a_claim_whose_answer_is_lost_is_made_once() {
    // Only every second commit is cut, because the retry commits as well.
    every_grant_is_answered_once(Cut::After, 2);
}

#[test]
fn a_claim_that_never_reached_the_server_is_made_once() {
    every_grant_is_answered_once(Cut::Before, 2);
}

/// A crash of the server may forget that a number was drawn from the sequence, so that another claim gets it.
#[test]
fn another_claim_with_the_same_fence_is_not_taken_for_the_lost_one() {
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let (direct, project) = create(&cluster.url_of(&database));
    add_tasks(&direct, 6);
    let proxy = Proxy::to(cluster.port());
    let url = cluster.tcp_url("tenure", proxy.port()).replace("/postgres", &format!("/{database}"));
    let store = open(&url, &project);
    // A known agent shares its turn, so that another claim can be made before the commit.
    for (store, name) in [(&store, "a"), (&direct, "b")] {
        drop(claim_next(store, name).unwrap().unwrap());
    }
    proxy.cut(Cut::Before, 1);
    let other = std::cell::OnceCell::new();
    let grant = claim_next_and(&store, "a", |grant| {
        if other.get().is_some() {
            proxy.cut(Cut::Never, 1);
            return;
        }
        let fence = grant.lease.fence.number();
        cluster.sql(&database, &format!("SELECT setval('tenure.fences', {})", fence - 1));
        let claimed = claim_next(&direct, "b").unwrap().unwrap();
        assert_eq!(claimed.lease.fence, grant.lease.fence, "the number was drawn again");
        other.set(claimed).unwrap();
    });
    let (grant, other) = (grant.unwrap().unwrap(), other.get().unwrap());
    assert!(proxy.cuts() >= 1);
    assert_ne!(grant.task.key, other.task.key);
    assert!(grant.lease.fence > other.lease.fence);
    assert_eq!(
        granted(&direct).last(),
        Some(&grant.lease.fence.number()),
        "the answer is a grant that exists"
    );
}

#[test]
fn a_client_that_cannot_reconnect_gets_an_error_that_the_outcome_is_unknown() {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 1);
    let proxy = Proxy::to(cluster.port());
    let url = cluster.tcp_url("tenure", proxy.port());
    let store = crate::scene::open_with(&url, &project, std::time::Duration::from_secs(1));
    proxy.cut(Cut::After, 1);
    let begun = std::thread::scope(|scope| {
        // The connection is closed for good as soon as the commit was cut.
        scope.spawn(|| {
            while proxy.cuts() == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            proxy.close();
        });
        claim_next(&store, "a")
    });
    let error = begun.unwrap_err().to_string();
    assert!(error.contains("whether it succeeded is not known"), "{error}");
}

#[test]
fn old_request_records_are_deleted() {
    let cluster = Cluster::shared();
    let (_, project) = create(&cluster.url());
    let mut client = Client::connect(&cluster.url(), NoTls).unwrap();
    let old = format!("INSERT INTO tenure.requests VALUES ('{project}', '{project}', 1, 0)");
    client.batch_execute(&old).unwrap();
    let left = format!("SELECT count(*) FROM tenure.requests WHERE project = '{project}' AND at = 0");
    // One in sixteen clients removes old rows with its first change.
    for _ in 0..400 {
        let store = open(&cluster.url(), &project);
        let store: &dyn Store = &store;
        store.read(|view| view.count_tasks()).unwrap();
        let event = || NewEvent::new(EventKind::AgentJoined, "a");
        store.write(Durability::Process, |tx| tx.append(event())).unwrap();
        if client.query_one(&left, &[]).unwrap().get::<_, i64>(0) == 0 {
            return;
        }
    }
    panic!("the old row was not removed");
}

#[test]
fn an_event_that_is_flushed_before_the_commit_is_recorded_once() {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    let proxy = Proxy::to(cluster.port());
    let store = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    proxy.cut(Cut::After, 2);
    let all = EventFilter { limit: 100, ..EventFilter::default() };
    for _ in 0..10 {
        let store: &dyn Store = &store;
        // To read the feed, the transaction must first write its own events.
        let answered = store.write(Durability::Power, |tx| {
            tx.append(NewEvent::new(EventKind::AgentJoined, "a"))?;
            tx.events(&all)
        });
        assert!(!answered.unwrap().is_empty());
    }
    assert!(proxy.cuts() >= 3, "only {} commits were cut", proxy.cuts());
    let direct: &dyn Store = &direct;
    assert_eq!(direct.read(|view| view.events(&all)).unwrap().len(), 10);
}
