//! Checks the invariants of the rows. Only reads; [`reconcile`](super::reconcile) and [`repair`] correct what this finds.
//!
//! It reads through [`View`] only, so it works on every store, including one that other programs have written to.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::end::evict;
use crate::context::Context;
use crate::error::{Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::{HolderKind, Liveness};
use crate::id::TaskId;
use crate::lease::{Attempt, AttemptState, EndReason, Lease, LeaseState, Resource, ResourceKind};
use crate::runner::Runner;
use crate::store::{LeaseFilter, TaskFilter, Tx, View, Viewer};
use crate::task::{Task, TaskStatus};

/// A violated invariant.
#[derive(Debug, Clone)]
pub enum Violation {
    /// L1: several open leases on one resource.
    Shared(Vec<Lease>),
    /// T1: the last status in the events differs from the row's, or no event has a status.
    MissingEvent { task: TaskName, recorded: Option<TaskStatus> },
    /// A task in progress without an open lease.
    Unheld(TaskName),
    /// An open lease on a task or section that does not exist.
    DanglingLease(Lease),
    /// An open lease that has lapsed.
    Lapsed(Lease, LeaseState),
    /// A runner whose process is dead, but which is not marked as ended.
    DeadRunner(Runner),
    /// An attempt whose supervisor is dead, or that has no lease.
    Abandoned(Attempt),
    /// Tickets of dead processes.
    DeadTickets(usize),
    /// R4: a runner's live lease on a task that it neither works on nor is about to start.
    NotWorkedOn(Lease),
}

pub fn check_invariants(view: &dyn View, ctx: &Context<'_>) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let tasks = all_tasks(view, ctx)?;
    about_leases(view, ctx, &tasks, &mut violations)?;
    about_statuses(view, &tasks, &mut violations)?;
    let (runners, attempts) = (view.runners(0)?, view.open_attempts()?);
    about_runners(view, ctx, &runners, &attempts, &mut violations)?;
    for runner in runners {
        if ctx.judge.liveness(&runner.process) == Liveness::Dead {
            violations.push(Violation::DeadRunner(runner));
        }
    }
    for attempt in attempts {
        let held = view.open_lease(&attempt.resource)?.is_some_and(|lease| lease.fence == attempt.fence);
        let supervised = ctx.judge.liveness(&attempt.owner) != Liveness::Dead;
        if !supervised || (!held && attempt.state == AttemptState::Running) {
            violations.push(Violation::Abandoned(attempt));
        }
    }
    let dead = |process| ctx.judge.liveness(process) == Liveness::Dead;
    let tickets = view.all_tickets()?.iter().filter(|ticket| dead(&ticket.process)).count();
    if tickets > 0 {
        violations.push(Violation::DeadTickets(tickets));
    }
    Ok(violations)
}

/// R4. A runner's row names its task from the transaction of the grant on, so a live lease without an attempt belongs to
/// work that is about to start only if the row names its task.
fn about_runners(
    view: &dyn View,
    ctx: &Context<'_>,
    runners: &[Runner],
    attempts: &[Attempt],
    violations: &mut Vec<Violation>,
) -> Result<()> {
    let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Task]), ..LeaseFilter::default() };
    for lease in view.leases(&filter)? {
        let of_runner = lease.holder.kind == HolderKind::Runner;
        let live = lease.state(view.now(), ctx.judge) == LeaseState::Live;
        if of_runner && live && !is_worked_on(&lease, runners, attempts) {
            violations.push(Violation::NotWorkedOn(lease));
        }
    }
    Ok(())
}

fn is_worked_on(lease: &Lease, runners: &[Runner], attempts: &[Attempt]) -> bool {
    let task = lease.resource.task_id();
    attempts.iter().any(|attempt| attempt.fence == lease.fence)
        || runners.iter().any(|row| row.id == lease.holder.id && row.current_task == task)
}

fn all_tasks(view: &dyn View, ctx: &Context<'_>) -> Result<Vec<Task>> {
    let viewer = ctx.viewer(view, None)?;
    let filter = TaskFilter { limit: u64::from(u32::MAX), ..TaskFilter::default() };
    Ok(view.list_tasks(&filter, &viewer)?.0)
}

fn about_leases(
    view: &dyn View,
    ctx: &Context<'_>,
    tasks: &[Task],
    violations: &mut Vec<Violation>,
) -> Result<()> {
    let known: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let mut by_resource: HashMap<Resource, Vec<Lease>> = HashMap::new();
    for lease in view.leases(&LeaseFilter::default())? {
        let there = match (lease.resource.task_id(), lease.resource.section_id()) {
            (Some(task), _) => known.contains(&task),
            (None, Some(section)) => view.section(&section)?.is_some(),
            (None, None) => true,
        };
        match lease.state(view.now(), ctx.judge) {
            _ if !there => violations.push(Violation::DanglingLease(lease.clone())),
            LeaseState::Live => {}
            state => violations.push(Violation::Lapsed(lease.clone(), state)),
        }
        by_resource.entry(lease.resource.clone()).or_default().push(lease);
    }
    violations.extend(by_resource.into_values().filter(|leases| leases.len() > 1).map(Violation::Shared));
    let unheld = tasks.iter().filter(|task| task.status == TaskStatus::InProgress && task.lease.is_none());
    violations.extend(unheld.map(|task| Violation::Unheld(super::name_of(task))));
    Ok(())
}

/// How many tasks are compared with their events in one query.
const PIECE: usize = 1_000;

fn about_statuses(view: &dyn View, tasks: &[Task], violations: &mut Vec<Violation>) -> Result<()> {
    for piece in tasks.chunks(PIECE) {
        let ids: Vec<TaskId> = piece.iter().map(|task| task.id.clone()).collect();
        let recorded: HashMap<TaskId, TaskStatus> =
            view.last_statuses(&ids)?.into_iter().map(|last| (last.task, last.status)).collect();
        for task in piece {
            let recorded = recorded.get(&task.id).copied();
            if recorded != Some(task.status) {
                violations.push(Violation::MissingEvent { task: super::name_of(task), recorded });
            }
        }
    }
    Ok(())
}

/// Corrects a violation that reconcile does not: closes the lease of a resource that does not exist, returns a task that its
/// runner does not work on, or appends a missing status event. Does nothing if the rows have changed since the violation
/// was found.
pub fn repair(tx: &mut dyn Tx, ctx: &Context<'_>, violation: &Violation, actor: &str) -> Result<()> {
    match violation {
        Violation::NotWorkedOn(lease) => {
            let open = tx.open_lease(&lease.resource)?.filter(|open| open.fence == lease.fence);
            let (runners, attempts) = (tx.runners(0)?, tx.open_attempts()?);
            if let Some(lease) = open.filter(|lease| !is_worked_on(lease, &runners, &attempts)) {
                evict(tx, ctx, actor, &lease)?;
            }
        }
        Violation::DanglingLease(lease) => {
            let is_open = tx.open_lease(&lease.resource)?.is_some_and(|open| open.fence == lease.fence);
            if is_open && !exists(tx, &lease.resource)? {
                tx.end_lease(lease.fence, EndReason::Forced)?;
                let detail =
                    json!({"lease": lease.id, "resource": lease.resource.to_string(), "reason": "forced"});
                tx.append(NewEvent::new(EventKind::LeaseEnded, actor).fence(lease.fence).detail(detail))?;
            }
        }
        Violation::MissingEvent { task, .. } => {
            let id = TaskId::new(&task.id);
            let Some(status) = status_of(tx, &id)? else { return Ok(()) };
            let recorded = tx.last_statuses(std::slice::from_ref(&id))?.pop().map(|last| last.status);
            if recorded != Some(status) {
                let mut event = NewEvent::new(EventKind::TaskStatus, actor)
                    .task(&id)
                    .detail(json!({"message": "the status event was missing"}));
                (event.from, event.to) = (recorded, Some(status));
                tx.append(event)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn status_of(view: &dyn View, task: &TaskId) -> Result<Option<TaskStatus>> {
    Ok(view.task_row(task, &Viewer::default())?.map(|task| task.status))
}

/// Whether the task or section that a lease is for exists. All other resources are only names.
fn exists(view: &dyn View, resource: &Resource) -> Result<bool> {
    if let Some(task) = resource.task_id() {
        return Ok(status_of(view, &task)?.is_some());
    }
    match resource.section_id() {
        Some(section) => Ok(view.section(&section)?.is_some()),
        None => Ok(true),
    }
}
