//! A hundred thousand items: storing them is linear, memory is flat, and a checkpoint costs the same at the end as at the
//! beginning. Ratios within one run, of the work that was done, never of the time on the wall.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
use tenure_core::id::RandomIds;
use tenure_core::kernel::{self, ItemOutcome, NextItem, Terms};
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Policy, SystemClock};
use tenure_sqlite::{OpenOptions, SqliteStore};

use crate::processes;
use crate::world::{Project, until};

const MANY: u64 = 100_000;

/// Starts a job of so many items, and gives the processor time and the memory that it took until the first of them ran;
/// then the same for its resume after a kill.
fn weigh(p: &Project, name: &str, items: u64) -> [(Duration, u64); 2] {
    let list = format!("{name}.jsonl");
    p.items(&list, (1..=items).map(|n| format!("{{\"id\":{n},\"text\":\"item number {n}\"}}")));
    let mut runs =
        [p.spawn(&["jobs", "start", name, "--items", &list, "--", "./wait.sh", name]), p.spawn(&["whoami"])];
    let mut weights = Vec::new();
    for step in 0..2_usize {
        if step == 1 {
            let waiting = std::mem::replace(&mut runs[1], p.spawn(&["resume", name]));
            waiting.end();
        }
        until("the first item runs", || p.marks(name).len() == step + 1);
        let pid = runs[step].pid();
        weights.push((processes::cpu(pid), processes::memory(pid, "VmHWM")));
        runs[step].signal(Signal::KILL);
        until("it is gone", || !runs[step].is_running());
    }
    [weights[0], weights[1]]
}

#[test]
fn a_hundred_thousand_items_are_stored_and_resumed_in_linear_time_and_flat_memory() {
    let p = Project::new();
    p.script("wait.sh", "echo x >>\"$PRETEND/$1\"; sleep 1000");
    let few = weigh(&p, "few", MANY / 10);
    let many = weigh(&p, "many", MANY);
    for (what, few, many) in [("start", few[0], many[0]), ("resume", few[1], many[1])] {
        eprintln!(
            "{what}: {} items {:?} and {} kB, {MANY} items {:?} and {} kB",
            MANY / 10,
            few.0,
            few.1,
            many.0,
            many.1
        );
        // Ten times as many cost at most ten times as much, with room for a page more in the tree.
        assert!(many.0 < few.0 * 10 * 2, "{what}");
        assert!(many.1 < few.1 * 2 && many.1 < few.1 + 16 * 1024, "{what}: memory grows with the items");
    }
    let job = p.job("many");
    assert_eq!((job["total"].as_u64(), job["succeeded"].as_u64()), (Some(MANY), Some(0)));
}

/// Takes and finishes so many items, and says what one of them cost.
fn cost(store: &dyn Store, job: &str, count: u32) -> Duration {
    let policy =
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
    let world = Context { judge: &ThisMachine, ids: &RandomIds, policy };
    let me = Incarnation::current();
    let caller = Caller::new(Holder::runner("bench")).with_process(me.clone());
    let begun = processes::cpu(std::process::id());
    for _ in 0..count {
        let (lease, attempt) = store
            .write(Durability::Process, |tx| {
                let terms = Terms::new(Duration::from_mins(5));
                let NextItem::Granted(grant) = kernel::take_item(tx, &world, &caller, job, &terms)? else {
                    panic!("there are items left");
                };
                let attempt = kernel::begin_attempt(tx, &world, &grant.lease, &me, None)?;
                Ok((grant.lease, attempt))
            })
            .unwrap();
        store
            .write(Durability::Process, |tx| {
                kernel::end_attempt(tx, &attempt, &kernel::Outcome::default(), "bench")?;
                kernel::finish_item(tx, &world, &lease, ItemOutcome::Succeeded).map(drop)
            })
            .unwrap();
    }
    processes::cpu(std::process::id()).saturating_sub(begun) / count
}

/// A job of so many items, none of which was begun; its id.
fn stored(p: &Project, name: &str, items: u64) -> String {
    let list = format!("{name}.txt");
    p.numbers(&list, items);
    let running = p.spawn(&["jobs", "start", name, "--items", &list, "--", "./wait.sh", name]);
    p.wait_for(name);
    running.signal(Signal::TERM);
    running.end();
    p.job(name)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_checkpoint_costs_the_same_with_a_hundred_thousand_items_before_or_behind_it_as_with_few() {
    let p = Project::new();
    p.script("wait.sh", "echo x >>\"$PRETEND/$1\"; sleep 1000");
    let rounds = 300;
    let (few, many) = (stored(&p, "few", u64::from(rounds) * 4), stored(&p, "many", MANY));
    let store = SqliteStore::open(&p.database(), OpenOptions::new(Arc::new(SystemClock))).unwrap();
    let store: Box<dyn Store> = Box::new(store);
    let least = |job: &str| (0..3).map(|_| cost(store.as_ref(), job, rounds)).min().unwrap();
    let of_few = least(&few);
    let before = least(&many);
    // The steps between are the same as these; here only the rows that they leave behind count.
    let conn = rusqlite::Connection::open(p.database()).unwrap();
    let moved = conn
        .execute(
            "UPDATE job_items SET state = 'succeeded' WHERE state = 'pending' AND number <= ?1 AND job_id = ?2",
            rusqlite::params![i64::try_from(MANY).unwrap() - i64::from(rounds) * 4, many],
        )
        .unwrap();
    conn.execute(
        "UPDATE jobs SET pending = pending - ?1, succeeded = succeeded + ?1 WHERE id = ?2",
        rusqlite::params![i64::try_from(moved).unwrap(), many],
    )
    .unwrap();
    drop(conn);
    let behind = least(&many);
    eprintln!("one item costs {of_few:?} among few, {before:?} before {MANY}, {behind:?} behind {moved}");
    assert!(before < of_few * 3 && behind < of_few * 3, "{of_few:?} {before:?} {behind:?}");
}
