//! Removes old history from a store in short transactions, so that other writers hardly notice.

use std::time::{Duration, Instant};

use tenure_core::Result;
use tenure_core::rules::{self, Pruned};
use tenure_core::store::{Durability, Store};

/// After this time a transaction commits, even if there is more to remove. Including its current step and the commit,
/// other writers wait less than 50 ms.
const HOLD: Duration = Duration::from_millis(20);

/// How often a runner looks for old history.
const INTERVAL: Duration = Duration::from_hours(1);

/// The longest time that a runner spends on pruning between two tasks.
const BETWEEN_TASKS: Duration = Duration::from_millis(500);

/// Removes history that is older than `retention`, until there is no more or for `limit`.
pub fn prune(store: &dyn Store, retention: Duration, limit: Duration) -> Result<Pruned> {
    prune_in_batches(store, retention, limit, HOLD)
}

fn prune_in_batches(
    store: &dyn Store,
    retention: Duration,
    limit: Duration,
    hold: Duration,
) -> Result<Pruned> {
    let started = Instant::now();
    let mut pruned = Pruned::default();
    if !store.read(|view| rules::has_old_history(view, retention))? {
        return Ok(pruned);
    }
    loop {
        let mut held = Instant::now();
        let step = store.write(Durability::Process, |tx| {
            held = Instant::now();
            let mut step = rules::prune(tx, retention)?;
            while step.more && held.elapsed() < hold {
                step = step.followed_by(rules::prune(tx, retention)?);
            }
            Ok(step)
        })?;
        pruned = pruned.followed_by(step);
        if !step.more || started.elapsed() >= limit {
            return Ok(pruned);
        }
        // Gives other writers as much time as this transaction took.
        std::thread::sleep(held.elapsed());
    }
}

/// When a runner removes old history and old logs: at its start, then once an hour, between two tasks.
#[derive(Debug)]
pub(crate) struct PruneSchedule {
    retention: Option<Duration>,
    next: Instant,
}

impl PruneSchedule {
    pub(crate) fn new(retention: Option<Duration>) -> Self {
        Self { retention, next: Instant::now() }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.next <= Instant::now()
    }

    /// An error is ignored here: the runner's work needs the same store and reports it.
    pub(crate) fn prune(&mut self, store: &dyn Store) {
        let Some(retention) = self.retention else {
            self.next = Instant::now() + INTERVAL;
            return;
        };
        match prune(store, retention, BETWEEN_TASKS) {
            Ok(pruned) if pruned.more => tracing::debug!(rows = pruned.rows, "pruned, and there is more"),
            Ok(pruned) => {
                tracing::debug!(rows = pruned.rows, "pruned");
                self.next = Instant::now() + INTERVAL;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot prune");
                self.next = Instant::now() + INTERVAL;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_testkit::fixture::Fixture;

    use super::*;

    #[test]
    fn old_history_is_removed_in_many_short_transactions() {
        let mut f = Fixture::sqlite();
        f.policy.max_attempts = u32::MAX;
        f.add_task("A");
        let ann = f.bare("ann");
        for _ in 0..200 {
            f.claim(&ann, "A").unwrap();
            f.release(&ann, "A").unwrap();
        }
        let events = f.events().len();
        f.clock.advance(Duration::from_hours(2));
        let mut transactions = 1;
        while prune_in_batches(f.store.as_ref(), Duration::from_hours(1), Duration::ZERO, Duration::ZERO)
            .unwrap()
            .more
        {
            transactions += 1;
        }
        assert!(transactions >= events / 100 && transactions < events, "{transactions} for {events} events");
        assert_eq!(f.events().len(), 1);
    }
}
