//! Retention: which rows of the history are removed once they are old.
//!
//! The last lease and the last status event of every task stay, so that a task's row can always be explained (T1) and a
//! late write of its last holder is judged by the lease itself (L8). Everything that is open stays.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{Fence, TaskId};
use crate::lease::{Lease, Resource, ResourceKind};
use crate::store::{EventFilter, History, ItemFilter, Stretch, Tx, View};

/// The rows of each kind that one step examines.
const STEP: u64 = 100;

/// The result of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The rows that were removed.
    pub rows: u64,
    /// Whether another step may remove more.
    pub more: bool,
}

impl Pruned {
    /// For a step that examined as many rows as it removed.
    fn removed(rows: u64) -> Self {
        Self { rows, more: rows >= STEP }
    }

    /// The sum of this result and that for another kind of rows in the same step.
    fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, more: self.more || other.more }
    }

    /// The sum of this result and that of the next step.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        Self { rows: self.rows + next.rows, more: next.more }
    }
}

/// Whether the oldest event that was not examined is older than `retention`. Every row of the history came with an event, so
/// otherwise there is nothing to remove. Costs one row.
pub fn has_old_history(view: &dyn View, retention: Duration) -> Result<bool> {
    let since = view.pruned_through(History::Events)?;
    let first = view.events(&EventFilter { since, limit: 1, ..EventFilter::default() })?;
    Ok(first.first().is_some_and(|event| event.at < view.now().before(retention)))
}

/// Removes some of the history that is older than `retention`. A step is short, so that other writers never wait long;
/// call it until there is no more.
pub fn prune(tx: &mut dyn Tx, retention: Duration) -> Result<Pruned> {
    let before = tx.now().before(retention);
    let mut pruned = prune_events(tx, before)?.and(prune_leases(tx, before)?).and(prune_jobs(tx, before)?);
    for rows in [
        tx.delete_messages(before, STEP)?,
        tx.delete_sessions(before, STEP)?,
        tx.delete_runners(before, STEP)?,
        tx.delete_agents(before, STEP)?,
    ] {
        pruned = pruned.and(Pruned::removed(rows));
    }
    Ok(pruned)
}

fn prune_events(tx: &mut dyn Tx, before: Timestamp) -> Result<Pruned> {
    let after = tx.pruned_through(History::Events)?;
    let events = tx.events(&EventFilter { since: after, limit: STEP, ..EventFilter::default() })?;
    let old: Vec<_> = events.iter().take_while(|event| event.at < before).collect();
    let Some(last) = old.last() else { return Ok(Pruned::default()) };
    let tasks: BTreeSet<&TaskId> = old.iter().filter_map(|event| event.task.as_ref()).collect();
    let tasks: Vec<TaskId> = tasks.into_iter().cloned().collect();
    let kept: Vec<i64> = tx.last_statuses(&tasks)?.iter().map(|last| last.event).collect();
    let rows = tx.delete_events(Stretch { after, through: last.seq }, &tasks, &kept)?;
    tx.set_pruned_through(History::Events, last.seq)?;
    Ok(Pruned { rows, more: old.len() == events.len() })
}

fn prune_leases(tx: &mut dyn Tx, before: Timestamp) -> Result<Pruned> {
    let after = tx.pruned_through(History::Leases)?;
    let leases = tx.leases_after(after, STEP)?;
    let old: Vec<&Lease> = leases.iter().take_while(|lease| is_old(lease, before)).collect();
    let Some(last) = old.last() else { return Ok(Pruned::default()) };
    let through = last.fence.number();
    let mut resources: Vec<Resource> = old.iter().map(|lease| lease.resource.clone()).collect();
    resources.sort_unstable_by(|a, b| (a.kind.as_str(), &a.id).cmp(&(b.kind.as_str(), &b.id)));
    resources.dedup();
    let tasks: Vec<Resource> =
        resources.iter().filter(|resource| resource.kind == ResourceKind::Task).cloned().collect();
    let mut kept: Vec<Fence> = tx.latest_fences(&tasks)?;
    // The row of an attempt whose processes may still run needs its lease.
    kept.extend(tx.open_attempts()?.iter().map(|attempt| attempt.fence));
    let rows = tx.delete_leases(Stretch { after, through }, &resources, &kept)?;
    tx.set_pruned_through(History::Leases, through)?;
    Ok(Pruned { rows, more: old.len() == leases.len() })
}

/// An open lease is skipped. It is removed together with the next lease of its resource that is examined.
fn is_old(lease: &Lease, before: Timestamp) -> bool {
    match lease.ended {
        Some((ended_at, _)) => ended_at < before,
        None => lease.acquired_at < before,
    }
}

fn prune_jobs(tx: &mut dyn Tx, before: Timestamp) -> Result<Pruned> {
    let Some(job) = tx.ended_job(before)? else { return Ok(Pruned::default()) };
    let filter = ItemFilter { job: Some(job.clone()), state: None, after: 0, limit: STEP };
    let numbers: Vec<u64> = tx.items(&filter)?.iter().map(|item| item.number).collect();
    if numbers.is_empty() {
        tx.delete_job(&job)?;
        return Ok(Pruned { rows: 1, more: true });
    }
    tx.delete_items(&job, &numbers)?;
    Ok(Pruned { rows: u64::try_from(numbers.len()).unwrap_or(STEP), more: true })
}
