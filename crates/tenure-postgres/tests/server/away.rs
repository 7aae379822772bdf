//! A server that is unavailable for a while.

use std::time::{Duration, Instant};

use tenure_core::ErrorCode;
use tenure_core::store::{Durability, Store};
use tenure_core::task::TaskStatus;
use tenure_postgres::{OpenOptions, PostgresStore};
use tenure_testkit::fixture::fresh_project;
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

use crate::scene::{add_tasks, address, claim_next, create, granted, open, open_with};

#[test]
fn an_unreachable_server_is_reported_soon_and_without_the_password() {
    let begun = Instant::now();
    let options = OpenOptions { patience: Duration::from_secs(1), ..OpenOptions::default() };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://ann:s3cret@127.0.0.1:{port}/work");
    let error = PostgresStore::open(address(&url), &fresh_project(), options).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Store);
    let text = format!("{error} {error:?}");
    assert!(text.contains(&format!("postgres://ann@127.0.0.1:{port}/work cannot be reached")), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "postgres://ann@127.0.0.1:{}/work?sslmode=disable&connect_timeout=1",
        silent.local_addr().unwrap().port()
    );
    let options = OpenOptions { patience: Duration::from_secs(1), ..OpenOptions::default() };
    let error = PostgresStore::open(address(&url), &fresh_project(), options).unwrap_err();
    assert!(error.to_string().contains("no answer for"), "{error}");
}

#[test]
fn a_patient_client_continues_after_a_restart() {
    let cluster = Cluster::private(&[]);
    let (store, _) = create(&cluster.url());
    add_tasks(&store, 3);
    let first = claim_next(&store, "a").unwrap().unwrap();
    cluster.stop_immediately();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            cluster.start();
        });
        let second = claim_next(&store, "b").unwrap().unwrap();
        assert_ne!(first.task.id, second.task.id, "an acknowledged grant survives the restart");
        assert!(first.lease.fence < second.lease.fence);
    });
    assert_eq!(granted(&store).len(), 2);
}

#[test]
fn a_client_that_stops_in_a_transaction_does_not_block_others_for_ever() {
    let cluster = Cluster::shared();
    let (stopped, project) = create(&cluster.url());
    add_tasks(&stopped, 2);
    let other = open_with(&cluster.url(), &project, Duration::from_secs(20));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let paused = scope.spawn(move || {
            let mut runs = 0;
            let stopped: &dyn Store = &stopped;
            let outcome = stopped.write(Durability::Power, |tx| {
                runs += 1;
                if runs == 1 {
                    begun.send(()).unwrap();
                    may_go_on.recv_timeout(Duration::from_mins(1)).unwrap();
                }
                tx.take_task_number()
            });
            (outcome.is_ok(), runs)
        });
        has_begun.recv().unwrap();
        assert!(claim_next(&other, "b").unwrap().is_some());
        go_on.send(()).unwrap();
        // Its connection was ended meanwhile, so it repeats its work from the beginning.
        assert_eq!(paused.join().unwrap(), (true, 2));
    });
}

#[test]
fn a_read_reconnects_after_its_connection_was_cut() {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 3);
    let proxy = Proxy::to(cluster.port());
    let url = cluster.tcp_url("tenure", proxy.port());
    let (store, impatient) = (open(&url, &project), open_with(&url, &project, Duration::from_secs(1)));
    let (store, impatient): (&dyn Store, &dyn Store) = (&store, &impatient);
    let expected = [(TaskStatus::Pending, 3)];
    for connected in [store, impatient] {
        assert_eq!(connected.read(|view| view.count_tasks()).unwrap(), expected);
    }
    proxy.close();
    assert!(impatient.read(|view| view.count_tasks()).is_err(), "no connection survives");
    proxy.open();
    assert_eq!(store.read(|view| view.count_tasks()).unwrap(), expected);
}

#[test]
fn a_connection_that_falls_silent_is_given_up_soon_by_a_client_with_little_patience() {
    let cluster = Cluster::shared();
    let (_, project) = create(&cluster.url());
    let proxy = Proxy::to(cluster.port());
    let patience = Duration::from_secs(2);
    let store = open_with(&cluster.tcp_url("tenure", proxy.port()), &project, patience);
    let store: &dyn Store = &store;
    store.read(|view| view.count_tasks()).unwrap();
    proxy.freeze();
    let begun = Instant::now();
    let error = store.read(|view| view.count_tasks()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Store);
    // A heartbeat leaves this much time before its lease ends.
    assert!(begun.elapsed() < patience * 5 / 2, "{:?}", begun.elapsed());
}

#[test]
fn a_client_that_timed_out_waiting_for_a_turn_can_continue_later() {
    let cluster = Cluster::shared();
    let (first, project) = create(&cluster.url());
    add_tasks(&first, 1);
    let second = open_with(&cluster.url(), &project, Duration::from_millis(200));
    let first: &dyn Store = &first;
    let refusals = first.write(Durability::Process, |_| {
        let second: &dyn Store = &second;
        let write = second.write(Durability::Process, |tx| Ok(tx.now())).unwrap_err();
        Ok([write, claim_next(second, "a").unwrap_err()])
    });
    for refusal in refusals.unwrap() {
        assert!(refusal.to_string().contains("the project is locked by another program"), "{refusal}");
    }
    assert!(claim_next(&second, "a").unwrap().is_some());
}
