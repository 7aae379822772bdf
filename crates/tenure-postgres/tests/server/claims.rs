//! Claims of the next task share a turn, and each decides as if it had the turn to itself.

use std::collections::BTreeSet;

use tenure_core::Context;
use tenure_core::event::EventKind;
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::RandomIds;
use tenure_core::kernel::{self, Terms};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::store::{ClaimHint, ClaimTarget, EventFilter, Store};
use tenure_testkit::FakeProcesses;
use tenure_testkit::postgres::{Cluster, Session};
use tenure_testkit::proxy::Proxy;
use uuid::Uuid;

use crate::scene::{POLICY, TTL, add_tasks, claim_next, create, finish, granted, open};

const CLIENTS: usize = 8;
const TASKS: usize = 200;

#[test]
fn concurrent_claims_take_every_task_once_and_their_events_are_in_order() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, TASKS);
    let url = cluster.url();
    let grants: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (url, project) = (&url, &project);
                scope.spawn(move || {
                    let store = open(url, project);
                    let mut grants = Vec::new();
                    while let Some(grant) = claim_next(&store, &format!("a{n}")).unwrap() {
                        // Between the claims, changes that need the exclusive turn.
                        if grants.len() % 3 == n % 3 {
                            finish(&store, &grant).unwrap();
                        }
                        grants.push(grant);
                    }
                    grants
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let tasks: BTreeSet<_> = grants.iter().map(|grant| grant.task.id.clone()).collect();
    assert_eq!((grants.len(), tasks.len()), (TASKS, TASKS));
    let mut fences: Vec<i64> = grants.iter().map(|grant| grant.lease.fence.number()).collect();
    fences.sort_unstable();
    assert_eq!(granted(&store), fences);
    let store: &dyn Store = &store;
    let filter = EventFilter { limit: 100_000, ..EventFilter::default() };
    let feed = store.read(|view| view.events(&filter)).unwrap();
    let numbers: Vec<i64> = feed.iter().map(|event| event.seq).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
    let acquired = feed.iter().filter(|event| event.kind == EventKind::LeaseAcquired).count();
    assert_eq!(acquired, TASKS);
    let joined = feed.iter().filter(|event| event.kind == EventKind::AgentJoined).count();
    assert_eq!(joined, CLIENTS);
}

#[test]
fn a_claim_takes_two_round_trips() {
    let cluster = Cluster::shared();
    let (direct, project) = create(&cluster.url());
    add_tasks(&direct, 60);
    let proxy = Proxy::to(cluster.port());
    let store = open(&cluster.tcp_url("tenure", proxy.port()), &project);
    // Statements are prepared when they are used a second time, and again from time to time.
    for _ in 0..3 {
        drop(claim_next(&store, "a").unwrap().unwrap());
    }
    let before = proxy.asks();
    for _ in 0..10 {
        drop(claim_next(&store, "a").unwrap().unwrap());
    }
    let round_trips = proxy.asks() - before;
    assert!(round_trips <= 23, "{round_trips} round trips for 10 claims");
}

#[test]
fn a_claim_that_saves_its_runner_shares_its_turn() {
    let cluster = Cluster::shared();
    let (store, project) = create(&cluster.url());
    add_tasks(&store, 2);
    drop(claim_next(&store, "r").unwrap().unwrap());
    // Another claim, which does not end.
    let (high, low) = Uuid::parse_str(&project).unwrap().as_u64_pair();
    let turn = i64::from_ne_bytes((high ^ low).to_ne_bytes());
    let other = format!("BEGIN; SELECT pg_advisory_xact_lock_shared({turn});");
    let _other = Session::holding(&cluster.url(), &other);
    let caller = Caller::new(Holder::agent("r"));
    let judge = FakeProcesses::default();
    let context = Context::new(&judge, &RandomIds, POLICY);
    let hint = ClaimHint { holder: &caller.holder, wants: ClaimTarget::Next(None) };
    let store: &dyn Store = &store;
    let granted = store.claim(hint, |tx| {
        let grant = kernel::acquire_next(tx, &context, &caller, None, &Terms::new(TTL))?;
        tx.save_runner(&Runner {
            id: "r".to_owned(),
            status: RunnerStatus::Running,
            process: Incarnation::current(),
            project_path: "/p".to_owned(),
            section: None,
            preset: "p".to_owned(),
            current_task: grant.as_ref().map(|grant| grant.task.id.clone()),
            log_path: None,
            started_at: tx.now(),
            heartbeat_at: tx.now(),
            completed_at: None,
            error: None,
        })?;
        Ok(grant.is_some())
    });
    assert!(granted.unwrap());
}
