//! A board is read in a number of round trips that does not depend on the number of its rows.

use std::time::Duration;

use tenure_core::Context;
use tenure_core::board::{self, Query};
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::RandomIds;
use tenure_core::kernel::{self, Finish};
use tenure_core::lease::Resource;
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::store::{Durability, NewTicket, Store};
use tenure_core::why::Asking;
use tenure_testkit::FakeProcesses;
use tenure_testkit::postgres::{Cluster, Session};
use tenure_testkit::proxy::Proxy;
use uuid::Uuid;

use crate::scene::{POLICY, add_tasks, claim_next, create, open};

/// Of each kind `rows`: held tasks with an attempt, a waiter and a runner; failed tasks with an attempt; pending tasks.
fn fill(store: &dyn Store, rows: usize) {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let me = Incarnation::current();
    add_tasks(store, 3 * rows);
    // Which waiter gets which task is looked up for a bounded number of different wishes, so there is one.
    let wish = claim_next(store, "first").unwrap().unwrap().task.id;
    for n in 0..2 * rows - 1 {
        let grant = claim_next(store, &format!("a{n}")).unwrap().unwrap();
        let (lease, name) = (&grant.lease, kernel::name_of(&grant.task));
        store
            .write(Durability::Process, |tx| {
                kernel::begin_attempt(tx, &ctx, lease, &me, None, Some("claude"), None)?;
                if n + 1 < rows {
                    let caller = Caller::holding(lease);
                    return kernel::finish(tx, &ctx, &caller, &name, Finish::Fail("broken"), false).map(drop);
                }
                tx.insert_ticket(&NewTicket {
                    resource: Resource::task(&wish),
                    holder: Holder::agent(format!("w{n}")),
                    process: me.clone(),
                    doorbell: None,
                    life: Duration::from_hours(1),
                    review: false,
                })?;
                tx.save_runner(&Runner {
                    id: format!("r{n}"),
                    status: RunnerStatus::Running,
                    process: me.clone(),
                    project_path: "/p".to_owned(),
                    section: None,
                    preset: "p".to_owned(),
                    current_task: Some(grant.task.id.clone()),
                    log_path: None,
                    started_at: tx.now(),
                    heartbeat_at: tx.now(),
                    completed_at: None,
                    error: None,
                })
            })
            .unwrap();
    }
}

/// Reads the board and its events, and returns the length of the shortest list.
fn read(store: &dyn Store) -> usize {
    let judge = FakeProcesses::default();
    let ctx = Context::new(&judge, &RandomIds, POLICY);
    let asking = Asking {
        ctx: &ctx,
        me: None,
        claimant: &|_| Caller::new(Holder::agent("newcomer")),
        time: &|at| at.to_seconds(),
        exclusive: None,
        remedy: &|_| None,
        no_runner: &|| None,
    };
    let rows = store.read(|view| board::read(view, &asking, &Query::default())).unwrap();
    let board = rows.board(&judge, &board::Surroundings::default());
    let events = store.read(|view| board::recent_events(view, 100)).unwrap();
    let lists = [
        board.held.rows.len(),
        board.queue.rows.len(),
        board.runners.len(),
        board.attention.rows.len(),
        events.len(),
    ];
    lists.into_iter().min().unwrap_or_default()
}

/// The round trips of one read of a board. Now and then a statement is prepared again, so it is the least of several.
fn round_trips(rows: usize) -> u64 {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    fill(&direct, rows);
    let proxy = Proxy::to(cluster.port());
    let store = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    let counts = (0..6).map(|_| {
        let before = proxy.asks();
        assert!(read(&store) + 1 >= rows);
        proxy.asks() - before
    });
    counts.min().unwrap()
}

#[test]
fn a_board_with_many_rows_takes_as_many_round_trips_as_one_with_few() {
    let (few, many) = (round_trips(2), round_trips(12));
    assert_eq!(many, few, "round trips for 12 rows of each kind, and for 2");
    assert!(many <= 40, "{many} round trips");
}

#[test]
fn a_board_waits_for_no_writer() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    fill(&store, 1);
    // A claim that does not end.
    let (high, low) = Uuid::parse_str(&project).unwrap().as_u64_pair();
    let turn = i64::from_ne_bytes((high ^ low).to_ne_bytes());
    let _other =
        Session::holding(&cluster.url(), &format!("BEGIN; SELECT pg_advisory_xact_lock_shared({turn});"));
    read(&store);
}
