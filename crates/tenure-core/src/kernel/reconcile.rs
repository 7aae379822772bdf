//! Reconciling the rows with the processes that are alive.
//!
//! After any crash, one reconcile restores every invariant of the rows. Remaining processes belong to attempts that it
//! marks `ending`; the caller kills them after the commit.

use serde_json::json;

use super::attempt::{self, mark_orphan};
use super::end::close_all_lapsed;
use super::item::return_item;
use super::wake::work_appeared;
use crate::context::Context;
use crate::error::{Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::Liveness;
use crate::lease::{Attempt, Lease, LeaseState, Resource};
use crate::runner::{Runner, RunnerStatus};
use crate::store::{ItemFilter, TaskFilter, Tx};
use crate::task::TaskStatus;

/// What was corrected.
#[derive(Debug, Clone, Default)]
pub struct Repairs {
    /// Lapsed leases, now closed.
    pub leases: Vec<(Lease, LeaseState)>,
    /// Tasks in progress without a lease, returned.
    pub tasks: Vec<TaskName>,
    /// Attempts whose processes have to be ended now.
    pub attempts: Vec<Attempt>,
    /// Runners that had died without being marked as ended.
    pub runners: Vec<Runner>,
    /// Items of jobs that were running without a lease, returned.
    pub items: Vec<Resource>,
    /// Jobs left in state `loading` by a process that died, removed.
    pub abandoned_jobs: Vec<String>,
    /// Tickets of dead processes, removed.
    pub tickets: usize,
}

impl Repairs {
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
            && self.tasks.is_empty()
            && self.attempts.is_empty()
            && self.runners.is_empty()
            && self.items.is_empty()
            && self.abandoned_jobs.is_empty()
            && self.tickets == 0
    }
}

pub fn reconcile(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<Repairs> {
    let leases = close_all_lapsed(tx, ctx, actor)?;
    let runners = close_dead_runners(tx, ctx, actor)?;
    let tasks = return_unheld_tasks(tx, ctx, actor)?;
    let items = return_unheld_items(tx, actor)?;
    let abandoned_jobs = remove_abandoned_jobs(tx)?;
    let tickets = delete_dead_tickets(tx, ctx)?;
    if !tasks.is_empty() || tickets > 0 {
        work_appeared(tx, ctx)?;
    }
    for attempt in tx.open_attempts()? {
        let open = tx.open_lease(&attempt.resource)?;
        if open.is_none_or(|lease| lease.fence != attempt.fence) {
            mark_orphan(tx, &attempt, actor)?;
        }
    }
    let attempts = attempt::unfinished_attempts(tx)?;
    Ok(Repairs { leases, tasks, attempts, runners, items, abandoned_jobs, tickets })
}

/// Closes the rows of runners whose process is proven dead.
pub fn close_dead_runners(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<Vec<Runner>> {
    let mut closed = Vec::new();
    for runner in tx.runners(0)? {
        if ctx.judge.liveness(&runner.process) != Liveness::Dead {
            continue;
        }
        let error = "its process is gone".to_owned();
        let dead = Runner {
            status: RunnerStatus::Failed,
            current_task: None,
            completed_at: Some(tx.now()),
            error: Some(error.clone()),
            ..runner
        };
        tx.save_runner(&dead)?;
        let detail = json!({"runner": dead.id, "pid": dead.process.process.pid, "reason": error});
        tx.append(NewEvent::new(EventKind::RunnerFailed, actor).detail(detail))?;
        closed.push(dead);
    }
    Ok(closed)
}

/// Only a grant leads to `in_progress`, and every end of a lease leads out of it, so only another program can leave
/// such a task.
fn return_unheld_tasks(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<Vec<TaskName>> {
    let viewer = ctx.viewer(tx, None)?;
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::InProgress]),
        limit: u64::from(u32::MAX),
        ..TaskFilter::default()
    };
    let mut returned = Vec::new();
    for task in tx.list_tasks(&filter, &viewer)?.0 {
        if task.lease.is_some() {
            continue;
        }
        let latest = tx.latest_lease(&Resource::task(&task.id))?;
        let to = latest.and_then(|lease| lease.claimed_from).unwrap_or(TaskStatus::Pending);
        let event = NewEvent::new(EventKind::TaskStatus, actor)
            .task(&task.id)
            .status(task.status, to)
            .detail(json!({"message": "in progress under no lease"}));
        tx.set_status(&task.id, to, event)?;
        returned.push(super::name_of(&task));
    }
    Ok(returned)
}

/// As with tasks: only a grant leads to `running`, and every end of a lease leads out of it.
fn return_unheld_items(tx: &mut dyn Tx, actor: &str) -> Result<Vec<Resource>> {
    let mut returned = Vec::new();
    for item in tx.items(&ItemFilter::running(None))? {
        if tx.open_lease(&item.resource())?.is_none() {
            return_item(tx, &item, "running under no lease", actor, None)?;
            returned.push(item.resource());
        }
    }
    Ok(returned)
}

/// The lapsed leases have been closed before, so a job in state `loading` without a lease is abandoned.
fn remove_abandoned_jobs(tx: &mut dyn Tx) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    for job in tx.loading_jobs()? {
        if tx.open_lease(&job.resource())?.is_none() {
            tx.delete_job(&job.id)?;
            removed.push(job.id);
        }
    }
    Ok(removed)
}

fn delete_dead_tickets(tx: &mut dyn Tx, ctx: &Context<'_>) -> Result<usize> {
    let mut deleted = 0;
    for ticket in tx.all_tickets()? {
        if ctx.judge.liveness(&ticket.process) == Liveness::Dead {
            tx.delete_ticket(ticket.number)?;
            deleted += 1;
        }
    }
    Ok(deleted)
}
