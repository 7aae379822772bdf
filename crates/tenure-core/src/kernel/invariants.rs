//! Checks the invariants of the rows. Only reads; [`reconcile`](super::reconcile) and [`repair`] correct what this finds.
//!
//! It reads through [`View`] only, so it works on every store, including one that other programs have written to.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use crate::context::Context;
use crate::error::{Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::Liveness;
use crate::id::TaskId;
use crate::lease::{Attempt, AttemptState, EndReason, Lease, LeaseState, Resource};
use crate::runner::Runner;
use crate::store::{EventFilter, LeaseFilter, TaskFilter, Tx, View};
use crate::task::{Task, TaskStatus};

/// A violated invariant.
#[derive(Debug, Clone)]
pub enum Violation {
    /// L1: several open leases on one resource.
    Shared(Vec<Lease>),
    /// T1: the last status in the events differs from the row's, or no event has a status.
    MissingEvent { task: TaskName, told: Option<TaskStatus> },
    /// A task in progress without an open lease.
    Unheld(TaskName),
    /// An open lease on a task or section that does not exist.
    DanglingLease(Lease),
    /// An open lease that has lapsed.
    Lapsed(Lease, LeaseState),
    /// A runner that is not marked as ended, and whose process is dead.
    DeadRunner(Runner),
    /// An attempt whose supervisor is dead, or that has no lease.
    Abandoned(Attempt),
    /// Tickets of dead processes.
    DeadTickets(usize),
}

pub fn check_invariants(view: &dyn View, ctx: &Context<'_>) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let tasks = all_tasks(view, ctx)?;
    about_leases(view, ctx, &tasks, &mut violations)?;
    about_statuses(view, &tasks, &mut violations)?;
    for runner in view.runners(0)? {
        if ctx.judge.liveness(&runner.process) == Liveness::Dead {
            violations.push(Violation::DeadRunner(runner));
        }
    }
    for attempt in view.open_attempts()? {
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

/// Events are read in batches, and only the last status of each task is kept.
const PIECE: u64 = 10_000;

fn about_statuses(view: &dyn View, tasks: &[Task], violations: &mut Vec<Violation>) -> Result<()> {
    let mut told: HashMap<TaskId, TaskStatus> = HashMap::new();
    let mut since = 0;
    loop {
        let events = view.events(&EventFilter { since, limit: PIECE, ..EventFilter::default() })?;
        let Some(last) = events.last() else { break };
        since = last.seq;
        told.extend(events.into_iter().filter_map(|event| {
            let begun = (event.kind == EventKind::TaskCreated).then_some(TaskStatus::Pending);
            Some((event.task?, event.to.or(begun)?))
        }));
    }
    for task in tasks {
        let told = told.get(&task.id).copied();
        if told != Some(task.status) {
            violations.push(Violation::MissingEvent { task: super::name_of(task), told });
        }
    }
    Ok(())
}

/// Corrects what reconcile does not: closes leases of resources that do not exist, and appends missing status events.
pub fn repair(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<()> {
    for violation in check_invariants(tx, ctx)? {
        match violation {
            Violation::DanglingLease(lease) => {
                tx.end_lease(lease.fence, EndReason::Forced)?;
                let detail =
                    json!({"lease": lease.id, "resource": lease.resource.to_string(), "reason": "forced"});
                tx.append(NewEvent::new(EventKind::LeaseEnded, actor).fence(lease.fence).detail(detail))?;
            }
            Violation::MissingEvent { task, told } => {
                let id = TaskId::new(&task.id);
                let mut event = NewEvent::new(EventKind::TaskStatus, actor)
                    .task(&id)
                    .detail(json!({"message": "the status event was missing"}));
                (event.from, event.to) = (told, Some(task.status));
                tx.append(event)?;
            }
            _ => {}
        }
    }
    Ok(())
}
