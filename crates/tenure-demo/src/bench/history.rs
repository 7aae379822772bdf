//! The cost of commands in a project with a long history compared with one with a short history, in processor time.

use std::time::Duration;

use tenure_core::holder::Caller;
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Finish, Terms, Verdict};
use tenure_core::reference;
use tenure_core::rules;
use tenure_core::store::{Durability, EventFilter, Store, Tx};

use super::Bench;
use super::child::run_time;
use super::fixture::{Fixture, agent, claimable_keys, context};
use super::statistics::median;
use crate::{Error, Result};

/// The number of tasks in each project: for the history, for claims of the next task, and for claims by name.
const TASKS: usize = 300;
const CLAIMED_BY_NAME: usize = 100;
const SHORT: i64 = 1_000;
/// The number of claims and releases in one transaction.
const BATCH: usize = 500;

impl Bench<'_> {
    /// Commands with a long history against the same commands with a short one, and the size after pruning.
    pub fn history(&mut self) -> Result<()> {
        let (count, shown) = if self.quick { (100_000, "100,000") } else { (10_000_000, "10,000,000") };
        let (short, long) = (self.fixture(TASKS)?, self.fixture(TASKS)?);
        for (fixture, events) in [(&short, SHORT), (&long, count)] {
            // Wake-up examines the agent that it would start, so there has to be one.
            fixture.run(&["config", "set", "presets.bench.command", "[/bin/true]"])?;
            fixture.run(&["config", "set", "runners.preset", "bench"])?;
            self.add_history(fixture, events)?;
        }
        for (what, args) in [
            ("status", &["status"][..]),
            ("tasks next", &["tasks", "next"]),
            ("task next --claim", &["task", "next", "--claim", "--agent", "a"]),
            ("task claim", &["task", "claim", "--agent", "a"]),
            ("runners wakeup", &["runners", "wakeup", "--dry-run"]),
        ] {
            let (mut at_short, mut at_long) = (Vec::new(), Vec::new());
            for key in claimable_keys().skip(CLAIMED_BY_NAME).take(self.rounds(40)) {
                let mut args = args.to_vec();
                if what == "task claim" {
                    args.push(&key);
                }
                at_short.extend(run_time(short.project.command(&args))?.1);
                at_long.extend(run_time(long.project.command(&args))?.1);
                self.check_interrupts()?;
            }
            if at_short.is_empty() {
                // This system has no processor times.
                continue;
            }
            let what = format!("{what}: with {shown} events ÷ with 1,000");
            self.results.at_most(what, median(&mut at_long) / median(&mut at_short), "×", 1.5);
        }
        self.prune(&long, shown)
    }

    /// Claims and releases tasks until the project has this many events.
    fn add_history(&self, fixture: &Fixture, events: i64) -> Result<()> {
        let store = fixture.store()?;
        let keys: Vec<String> = claimable_keys().skip(60).take(20).collect();
        let mut next = keys.iter().cycle();
        while last_event(store.as_ref())? < events {
            store.write(Durability::Process, |tx| {
                (0..BATCH).zip(&mut next).try_for_each(|(_, key)| claim_and_release(tx, &agent("h"), key))
            })?;
            self.check_interrupts()?;
        }
        Ok(())
    }

    /// Removes everything but the last events of each task, and compares what is left.
    fn prune(&mut self, fixture: &Fixture, shown: &str) -> Result<()> {
        let store = fixture.store()?;
        let (mut longest, mut steps) = (Duration::ZERO, 0_u64);
        loop {
            let mut held = std::time::Instant::now();
            let step = store.write(Durability::Process, |tx| {
                held = std::time::Instant::now();
                rules::prune(tx, Duration::from_millis(1))
            })?;
            (longest, steps) = (longest.max(held.elapsed()), steps + 1);
            self.check_interrupts()?;
            if !step.more {
                break;
            }
        }
        let left = store.read(|view| {
            let all = EventFilter { limit: u64::MAX, ..EventFilter::default() };
            view.count_events(&all)
        })?;
        let ratio = super::to_float(left) / super::to_float(u64::try_from(TASKS).unwrap_or(u64::MAX));
        self.results.at_most(format!("events left of {shown} after pruning ÷ tasks"), ratio, "×", 1.5);
        self.results.at_most("longest step of pruning".to_owned(), longest.as_secs_f64() * 1e3, "ms", 50.0);
        if steps == 0 {
            return Err(Error::bench("nothing was pruned"));
        }
        Ok(())
    }
}

fn last_event(store: &dyn Store) -> Result<i64> {
    let filter = EventFilter { last: true, limit: 1, ..EventFilter::default() };
    Ok(store.read(|view| view.events(&filter))?.last().map_or(0, |event| event.seq))
}

fn claim_and_release(tx: &mut dyn Tx, caller: &Caller, key: &str) -> tenure_core::Result<()> {
    let name = reference::task(tx, key)?;
    let terms = Terms::new(Duration::from_mins(15));
    match kernel::acquire_task(tx, &context(), caller, &TaskId::new(&name.id), &terms)? {
        Verdict::Granted(_) => {
            kernel::finish(tx, &context(), caller, &name, Finish::Release(None), false).map(drop)
        }
        refused => Err(tenure_core::Error::General(format!("{key} was not granted: {refused:?}"))),
    }
}
