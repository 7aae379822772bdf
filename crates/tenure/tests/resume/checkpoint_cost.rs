//! A checkpoint costs the same with a hundred thousand items before or after it as with few. Compares processor time within
//! one run, never wall time.

use std::time::Duration;

use rustix::process::Signal;
use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
use tenure_core::id::RandomIds;
use tenure_core::kernel::{self, ItemOutcome, NextItem, Terms};
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Policy};
use tenure_testkit::cli::processes;

use crate::project::Project;

const MANY: u64 = 100_000;

/// Takes and finishes `count` items. Returns the processor time of one.
fn cost(store: &dyn Store, job: &str, count: u32) -> Duration {
    let policy =
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
    let world = Context::new(&ThisMachine, &RandomIds, policy);
    let me = Incarnation::current();
    let caller = Caller::new(Holder::runner("bench")).with_process(me.clone());
    let begun = processes::cpu(std::process::id());
    for _ in 0..count {
        let (lease, attempt) = store
            .write(Durability::Process, |tx| {
                let terms = Terms::new(Duration::from_mins(5));
                let NextItem::Granted(grant) = kernel::take_item(tx, &world, &caller, job, &terms)? else {
                    panic!("items are left");
                };
                let attempt = kernel::begin_attempt(tx, &world, &grant.lease, &me, None, None, None)?;
                Ok((grant.lease, attempt))
            })
            .unwrap();
        store
            .write(Durability::Process, |tx| {
                kernel::end_attempt(tx, &world, &attempt, &kernel::Outcome::default(), "bench")?;
                kernel::finish_item(tx, &world, &lease, ItemOutcome::Succeeded).map(drop)
            })
            .unwrap();
    }
    processes::cpu(std::process::id()).saturating_sub(begun) / count
}

/// A job of `items` items, none of which has finished. Returns its id.
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
fn a_checkpoint_costs_the_same_whatever_the_number_of_items() {
    let p = Project::new();
    p.script("wait.sh", "echo x >>\"$PRETEND/$1\"; sleep 1000");
    let rounds = 300;
    let (few, many) = (stored(&p, "few", u64::from(rounds) * 4), stored(&p, "many", MANY));
    let store = p.store();
    let least = |job: &str| (0..3).map(|_| cost(store.as_ref(), job, rounds)).min().unwrap();
    let of_few = least(&few);
    let before = least(&many);
    // Writes the rows that the steps in between would leave, which is faster than running them.
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
