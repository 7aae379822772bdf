//! The cost of the rules on PostgreSQL, as ratios to bare statements on the same server in the same run.
//!
//! Run `cargo bench -p tenure-postgres`, with the names of parts after `--` to select some: `claims`, `round-trips`, `hand-off`,
//! `growth`, `idle`. Each line of the output names a measurement and whether it is within its budget.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it fails"
)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use common::{TTL, context, fill, quantile};
use postgres::{Client, NoTls};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Finish, Grant, Terms, Verdict, Waiter};
use tenure_core::lease::Resource;
use tenure_core::store::{ClaimHint, ClaimTarget, Durability, Store, StoreHint, TaskLookup};
use tenure_postgres::{PostgresStore, RosterOptions};
use tenure_testkit::fixture::{fresh_project, new_task};
use tenure_testkit::postgres::Cluster;
use tenure_testkit::proxy::Proxy;

/// The round trips of connecting: the request for encryption, and the message that begins a session.
const CONNECTING: u64 = 2;
fn main() {
    let cluster = Cluster::private(&["max_wal_size = 4GB"]);
    let mut missed = 0;
    let mut judge = |what: &str, found: f64, budget: f64, smaller_is_better: bool| {
        let good = if smaller_is_better { found <= budget } else { found >= budget };
        missed += u32::from(!good);
        let bound = if smaller_is_better { "at most" } else { "at least" };
        println!("  {what}: {found:.2} ({bound} {budget}) {}", if good { "ok" } else { "MISSED" });
    };
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    // Those with large tables come last, because the server cleans them up for minutes.
    if wanted("round-trips") {
        judge("round trips of a claim after connecting", round_trips(&cluster), 3.0, true);
    }
    if wanted("hand-off") {
        let (commit, hand_off) = hand_offs(&cluster);
        println!("commit {commit:.2?}, release to the next waiter's grant {hand_off:.2?} (p50)");
        judge("hand-off in commits", hand_off.as_secs_f64() / commit.as_secs_f64(), 2.0, true);
    }
    if wanted("idle") {
        for (machines, shares) in [("twenty machines", false), ("one machine", true)] {
            let share = idle_waiters(&cluster, 200, shares);
            println!(
                "200 idle waiters on {machines}: the server uses {:.2} % of one processor",
                share * 100.0
            );
            judge("percent of a processor", share * 100.0, 1.0, true);
        }
    }
    for clients in [8, 32] {
        if !wanted("claims") {
            break;
        }
        let time = Duration::from_secs(5);
        // Each is measured twice, alternating, and the better result counts: other work on the machine only slows it
        // down.
        let (mut raw, mut ours, mut fair) = (0.0_f64, 0.0_f64, 1.0_f64);
        for _ in 0..2 {
            let bare = raw_claims(&cluster, clients, time);
            let found = our_claims(&cluster, clients, time);
            println!("processor time per claim: SKIP LOCKED {}, tenure {}", bare.cost, found.cost);
            raw = raw.max(bare.per_second);
            (ours, fair) = (ours.max(found.per_second), fair.min(found.fairness));
        }
        println!("claims with {clients} clients: SKIP LOCKED {raw:.0}/s, tenure {ours:.0}/s");
        judge("share of a bare SKIP LOCKED loop", ours / raw, 0.8, false);
        judge("slowest client's share of the fastest one's", fair, 0.25, false);
    }
    if wanted("growth") {
        let (few, many) = (next_at(&cluster, 100), next_at(&cluster, 1_000_000));
        println!("next --claim: {few:.2?} among 100 tasks, {many:.2?} among 1,000,000 (p50)");
        judge("growth from 100 to 1,000,000", many.as_secs_f64() / few.as_secs_f64(), 1.5, true);
    }
    drop(cluster);
    std::process::exit(i32::from(missed > 0));
}

fn open(cluster: &Cluster, project: &str) -> PostgresStore {
    common::open(&cluster.url(), project).unwrap()
}

fn connect(cluster: &Cluster) -> Client {
    Client::connect(&cluster.url(), NoTls).unwrap()
}

struct Rate {
    per_second: f64,
    /// The slowest client's share of the fastest one's successes.
    fairness: f64,
    /// The processor time of one success, in the server and in the client. Other work on the machine hardly changes it.
    cost: String,
}

/// Runs `work` in as many threads as there are clients until the time is over, and counts its successes.
#[expect(clippy::cast_precision_loss, reason = "approximate rates")]
fn rate<T>(
    cluster: &Cluster,
    clients: usize,
    time: Duration,
    open: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize) -> bool + Sync,
) -> Rate {
    let (begin, over) = (Barrier::new(clients + 1), AtomicBool::new(false));
    let (mut wall, mut server, mut client) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let done: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..clients)
            .map(|n| {
                let (begin, over, open, work) = (&begin, &over, &open, &work);
                scope.spawn(move || {
                    let mut client = open();
                    // All clients are connected, and then all begin.
                    begin.wait();
                    begin.wait();
                    let mut done = 0;
                    while !over.load(Ordering::Relaxed) && work(&mut client, n) {
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        begin.wait();
        let (before, own) = (cluster.processor_times(), own_time());
        begin.wait();
        let begun = Instant::now();
        std::thread::sleep(time);
        // The connections' processes end with their clients.
        (server, client) = (cluster.used_since(&before), own_time().saturating_sub(own));
        over.store(true, Ordering::Relaxed);
        let done = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        wall = begun.elapsed();
        done
    });
    let total = done.iter().sum::<usize>();
    let fairness = done.iter().min().map_or(0.0, |least| *least as f64)
        / done.iter().max().map_or(1.0, |most| (*most).max(1) as f64);
    let each = |all: Duration| all.as_micros() / u128::try_from(total.max(1)).unwrap();
    let cost = format!("{} + {} µs", each(server), each(client));
    Rate { per_second: total as f64 / wall.as_secs_f64(), fairness, cost }
}

/// The processor time of this process so far.
fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The usual loop: it writes the same rows as a claim of tenure (task, lease, two events), and does nothing else.
fn raw_claims(cluster: &Cluster, clients: usize, time: Duration) -> Rate {
    connect(cluster)
        .batch_execute(
            "DROP SCHEMA IF EXISTS raw CASCADE; CREATE SCHEMA raw;
             CREATE TABLE raw.tasks (id text PRIMARY KEY, title text, status text NOT NULL, priority bigint,
                                     position bigint, updated_at bigint);
             CREATE INDEX ON raw.tasks (priority, position) WHERE status = 'pending';
             CREATE TABLE raw.leases (fence bigserial PRIMARY KEY, task text NOT NULL, holder text, acquired_at bigint,
                                      expires_at bigint, ended_at bigint);
             CREATE UNIQUE INDEX ON raw.leases (task) WHERE ended_at IS NULL;
             CREATE TABLE raw.events (seq bigserial PRIMARY KEY, at bigint, kind text, actor text, task text,
                                      detail text);
             INSERT INTO raw.tasks SELECT 't' || n, 'task ' || n, 'pending', 100, n, 0
             FROM generate_series(1, 100000) AS n; ANALYZE raw.tasks;",
        )
        .unwrap();
    sync_disk();
    rate(
        cluster,
        clients,
        time,
        || {
            let mut client = connect(cluster);
            let all = [
            "SELECT id FROM raw.tasks WHERE status = 'pending' ORDER BY priority, position LIMIT 1
             FOR UPDATE SKIP LOCKED",
            "UPDATE raw.tasks SET status = 'in_progress', updated_at = 1 WHERE id = $1",
            "INSERT INTO raw.leases (task, holder, acquired_at, expires_at) VALUES ($1, $2, 1, 2) RETURNING fence",
            "INSERT INTO raw.events (at, kind, actor, task, detail)
             VALUES (1, 'lease.acquired', $2, $1, '{}'), (1, 'task.status', $2, $1, NULL)",
        ]
        .map(|sql| client.prepare(sql).unwrap());
            (client, all)
        },
        |(client, [next, update, lease, event]), n| {
            let holder = format!("a{n}");
            let mut tx = client.transaction().unwrap();
            let Some(row) = tx.query_opt(next, &[]).unwrap() else { return false };
            let task: String = row.get(0);
            tx.execute(update, &[&task]).unwrap();
            tx.query_one(lease, &[&task, &holder]).unwrap();
            tx.execute(event, &[&task, &holder]).unwrap();
            tx.commit().unwrap();
            true
        },
    )
}

fn our_claims(cluster: &Cluster, clients: usize, time: Duration) -> Rate {
    let project = fresh_project();
    fill(&cluster.url(), &project, 100_000);
    sync_disk();
    rate(
        cluster,
        clients,
        time,
        || open(cluster, &project),
        |store, n| next(store, &format!("a{n}")).is_some(),
    )
}

/// Everything that a command does after it has connected: it opens the project and claims a task by its key, for a new
/// agent.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn round_trips(cluster: &Cluster) -> f64 {
    let project = fresh_project();
    fill(&cluster.url(), &project, 1);
    let proxy = Proxy::to(cluster.port());
    let store = common::open(&cluster.tcp_url("tenure", proxy.port()), &project).unwrap();
    let ann = Caller::new(Holder::agent("ann"));
    let hint = ClaimHint { holder: &ann.holder, wants: ClaimTarget::Task("K1") };
    let store: &dyn Store = &store;
    let verdict = store.claim(hint, |tx| {
        let id = TaskId::new(tx.find_tasks(TaskLookup::Key("K1"), 1)?.remove(0).id);
        kernel::acquire_task(tx, &context(), &ann, &id, &Terms::new(TTL))
    });
    assert!(matches!(verdict.unwrap(), Verdict::Granted(_)));
    (proxy.asks() - CONNECTING) as f64
}

fn next(store: &dyn Store, name: &str) -> Option<Grant> {
    let caller = Caller::new(Holder::agent(name));
    let hint = ClaimHint { holder: &caller.holder, wants: ClaimTarget::Next(None) };
    store.claim(hint, |tx| kernel::acquire_next(tx, &context(), &caller, None, &Terms::new(TTL))).unwrap()
}

/// Writes pending data to the disk before anything is measured.
fn sync_disk() {
    assert!(std::process::Command::new("sync").status().unwrap().success());
}

fn median(mut times: Vec<Duration>) -> Duration {
    quantile(&mut times, 0.5)
}

/// A commit of one row, and the time from a release to the next waiter's grant.
fn hand_offs(cluster: &Cluster) -> (Duration, Duration) {
    let project = fresh_project();
    let store = open(cluster, &project);
    let id = TaskId::new("00000001-0000-4000-8000-000000000000");
    let task = new_task(&id, "K", None, 1);
    let store: &dyn Store = &store;
    store
        .write(Durability::Power, |tx| {
            tx.insert_task(&task, NewEvent::new(EventKind::TaskCreated, "bench").task(&id))
        })
        .unwrap();
    let mut client = connect(cluster);
    client
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS raw; CREATE TABLE IF NOT EXISTS raw.one (n bigint);
             INSERT INTO raw.one VALUES (0)",
        )
        .unwrap();
    let update = client.prepare("UPDATE raw.one SET n = n + 1").unwrap();
    let name = store.read(|view| view.find_tasks(TaskLookup::Key("K"), 1)).unwrap().remove(0);
    let ann = Caller::new(Holder::agent("ann"));
    let bob = Caller::new(Holder::agent("bob"));
    let resource = Resource::task(&id);
    let acquire = |store: &dyn Store, caller: &Caller, ticket: Option<(i64, Resource)>| {
        let terms = Terms { ticket, ..Terms::new(TTL) };
        let hint = ClaimHint { holder: &caller.holder, wants: ClaimTarget::Task(id.as_str()) };
        store.claim(hint, |tx| kernel::acquire_task(tx, &context(), caller, &id, &terms)).unwrap()
    };
    let release = |store: &dyn Store, caller: &Caller| {
        let finish = Finish::Release(None);
        store
            .write(Durability::Power, |tx| kernel::finish(tx, &context(), caller, &name, finish, false))
            .unwrap();
    };
    let (mut commits, mut hand_offs) = (Vec::new(), Vec::new());
    let ((begin, begun), (granted, was_granted)) = (mpsc::channel::<()>(), mpsc::channel::<Instant>());
    std::thread::scope(|scope| {
        let waiting = open(cluster, &project);
        let (acquire, release, resource) = (&acquire, &release, &resource);
        let (progress, progressed) = mpsc::channel();
        scope.spawn(move || {
            let bell = waiting.doorbell().unwrap();
            let waiting: &dyn Store = &waiting;
            while begun.recv().is_ok() {
                bell.silence();
                let number = waiting.write(Durability::Process, |tx| {
                    let (process, address) = (Incarnation::current(), bell.address());
                    let waiter =
                        Waiter { caller: &bob, process: &process, doorbell: Some(&address), review: false };
                    kernel::enqueue(tx, &context(), &waiter, resource, None)
                });
                progress.send(()).unwrap();
                let mut fds =
                    [rustix::event::PollFd::from_borrowed_fd(bell.fd(), rustix::event::PollFlags::IN)];
                let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
                assert!(
                    rustix::event::poll(&mut fds, Some(&limit)).unwrap() > 0,
                    "the doorbell did not ring"
                );
                let verdict = acquire(waiting, &bob, Some((number.unwrap(), resource.clone())));
                granted.send(Instant::now()).unwrap();
                assert!(matches!(verdict, Verdict::Granted(_)));
                release(waiting, &bob);
                progress.send(()).unwrap();
            }
        });
        for _ in 0..300 {
            let before = Instant::now();
            client.execute(&update, &[]).unwrap();
            commits.push(before.elapsed());
            assert!(matches!(acquire(store, &ann, None), Verdict::Granted(_)));
            begin.send(()).unwrap();
            progressed.recv().unwrap();
            release(store, &ann);
            let released = Instant::now();
            hand_offs.push(was_granted.recv().unwrap().saturating_duration_since(released));
            progressed.recv().unwrap();
        }
        drop(begin);
    });
    (median(commits), median(hand_offs))
}

fn next_at(cluster: &Cluster, count: i64) -> Duration {
    let project = fresh_project();
    fill(&cluster.url(), &project, count);
    let store = open(cluster, &project);
    let mut times = Vec::new();
    for n in 0..90 {
        let begun = Instant::now();
        assert!(next(&store, &format!("a{n}")).is_some());
        times.push(begun.elapsed());
    }
    // The first few are slower, because they prepare statements.
    median(times.split_off(10))
}

/// How often a waiter polls by default.
const POLL: Duration = Duration::from_secs(5);

/// Waiters as on the command line: each has a ticket and a doorbell, and refreshes its ticket. A machine is a roster. If they
/// share a machine, most of them do not keep their connection meanwhile.
fn idle_waiters(cluster: &Cluster, count: usize, share_machine: bool) -> f64 {
    let project = fresh_project();
    let store = open(cluster, &project);
    fill(&cluster.url(), &project, 1);
    assert!(next(&store, "first").is_some());
    let folder = tempfile::tempdir().unwrap();
    let (begin, over) = (Barrier::new(count + 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for n in 0..count {
            let (begin, over, project) = (&begin, &over, &project);
            let machine = if share_machine { 0 } else { n / 10 };
            let roster =
                RosterOptions { folder: folder.path().join(machine.to_string()), poll_interval: POLL };
            scope.spawn(move || {
                let store = common::open_as(&cluster.url(), project, Some(roster)).unwrap();
                let bell = store.doorbell().unwrap();
                let postgres = &store;
                let store: &dyn Store = postgres;
                let resource = Resource::task(&TaskId::new("00000000000000000000000000000001"));
                let caller = Caller::new(Holder::agent(format!("w{n}")));
                let me = Incarnation::current();
                let number = store
                    .write(Durability::Process, |tx| {
                        let address = bell.address();
                        let waiter =
                            Waiter { caller: &caller, process: &me, doorbell: Some(&address), review: false };
                        kernel::enqueue(tx, &context(), &waiter, &resource, None)
                    })
                    .unwrap();
                begin.wait();
                // Spreads the waiters over time.
                std::thread::sleep(Duration::from_millis(u64::try_from(n).unwrap() * 25));
                while !over.load(Ordering::Relaxed) {
                    assert!(store.refresh_ticket(number, &resource).unwrap().is_some());
                    if share_machine {
                        store.hint(StoreHint::Sleeps);
                    }
                    std::thread::sleep(postgres.refresh_pause(POLL));
                }
            });
        }
        begin.wait();
        // By then every waiter has run each of its statements a few times.
        std::thread::sleep(Duration::from_secs(16));
        let (before, ended, begun) = (cluster.processor_times(), cluster.time_of_ended(), Instant::now());
        std::thread::sleep(Duration::from_secs(20));
        let mut used = cluster.used_since(&before);
        if share_machine {
            // Includes the processes of short connections.
            used += cluster.time_of_ended().saturating_sub(ended);
        }
        let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        share
    })
}
