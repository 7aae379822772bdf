//! The end of a lease: it is released, lapses, or is evicted. The reports of its holder are in `finish.rs`.

use serde_json::json;

use super::lease_state::is_of_same_process;
use super::{attempt, item, kept, wake};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::store::{LeaseFilter, TaskEdit, Tx, Viewer};
use crate::task::{Task, TaskStatus};

#[derive(Debug, Clone)]
pub struct Evicted {
    /// The lease that was `shown`; if it is a section's, also its holder's leases on tasks of that section.
    pub ended: Vec<Lease>,
}

/// Takes a lease away from its holder. Refused if it is no longer the one that was `shown`.
pub fn evict(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str, shown: &Lease) -> Result<Evicted> {
    end_shown(tx, ctx, actor, None, shown, EndReason::Forced)
}

/// The holder releases a lease, whatever its resource.
pub fn release(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str, own: &Lease) -> Result<Evicted> {
    end_shown(tx, ctx, actor, None, own, EndReason::Released)
}

/// [`release`] or [`evict`] by a caller that may act from within an attempt under the lease, which is then charged.
pub fn end_lock(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    shown: &Lease,
    reason: EndReason,
) -> Result<Evicted> {
    end_shown(tx, ctx, &caller.holder.id, Some(caller), shown, reason)
}

fn end_shown(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    actor: &str,
    caller: Option<&Caller>,
    shown: &Lease,
    reason: EndReason,
) -> Result<Evicted> {
    let current = tx.open_lease(&shown.resource)?;
    let Some(lease) = current.filter(|lease| lease.is_same(shown)) else {
        return Err(Error::LockNotFound { reference: shown.id.to_string() });
    };
    let viewer = ctx.viewer(tx, None)?;
    let mut ended = vec![lease.clone()];
    if let Some(section) = lease.resource.section_id() {
        ended.extend(tx.task_leases_in_section(&section, &lease.holder)?);
    }
    // The section's lease is closed first: closing the last of its tasks would end it as `released`.
    for lease in &ended {
        let state = lease.state(tx.now(), ctx.judge);
        if state != LeaseState::Live && kept::apply(tx, ctx, lease)? {
            continue;
        }
        let reason = if state == LeaseState::Live { reason } else { reason_of(state) };
        let within = match caller {
            Some(caller) => attempt::acts_within(tx, caller, lease)?,
            None => false,
        };
        let charged = close(tx, lease, reason, None, actor, within)?;
        return_task(tx, ctx, &viewer, lease, (reason, reason.as_str()), actor, charged)?;
        if reason == EndReason::Forced {
            wake::holder(tx, lease);
        }
    }
    Ok(Evicted { ended })
}

/// Ends an open lease, whatever its state, without ringing its holder.
pub(super) fn end_by_force(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease, actor: &str) -> Result<()> {
    let viewer = ctx.viewer(tx, None)?;
    let reason = EndReason::Forced;
    close(tx, lease, reason, None, actor, false)?;
    return_task(tx, ctx, &viewer, lease, (reason, reason.as_str()), actor, false)
}

/// Closes every lapsed lease and returns its task. Returns what was closed.
pub fn close_all_lapsed(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str) -> Result<Vec<(Lease, LeaseState)>> {
    let mut closed = Vec::new();
    for lease in tx.leases(&LeaseFilter::default())? {
        if lease.state(tx.now(), ctx.judge) == LeaseState::Live {
            continue;
        }
        // Closing an earlier lease may have closed this one too.
        let open = tx.open_lease(&lease.resource)?.filter(|open| open.fence == lease.fence);
        let state = open.as_ref().unwrap_or(&lease).state(tx.now(), ctx.judge);
        if state == LeaseState::Live {
            continue;
        }
        if let Some(lease) = open {
            close_lapsed(tx, ctx, &lease, state, actor)?;
        }
        closed.push((lease, state));
    }
    Ok(closed)
}

/// Closes one lapsed lease, marks its attempt as ending, and returns its task to the status it was claimed from. If its
/// supervisor kept an outcome, that is applied instead (F6).
pub(crate) fn close_lapsed(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    state: LeaseState,
    actor: &str,
) -> Result<()> {
    if kept::apply(tx, ctx, lease)? {
        return Ok(());
    }
    let reason = reason_of(state);
    // A holder that died in this boot may have been killed by its attempt, which is therefore charged. A reboot is not
    // charged.
    let charge = state == LeaseState::HolderDead
        && lease.process.as_ref().is_some_and(|process| ctx.judge.is_this_boot(process));
    let charged = close(tx, lease, reason, None, actor, charge)?;
    let viewer = ctx.viewer(tx, None)?;
    let why = if charged { "the supervisor died" } else { reason.as_str() };
    return_task(tx, ctx, &viewer, lease, (reason, why), actor, charged)?;
    match lease.resource.section_id() {
        Some(section) => close_lapsed_in_section(tx, ctx, &section, lease, actor),
        None => Ok(()),
    }
}

/// Closes the lapsed leases that were held under a section whose lease is over. Left open, they would be valid again after
/// the clock steps back, beside a later holder of the section.
pub(super) fn close_lapsed_in_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    section: &SectionId,
    over: &Lease,
    actor: &str,
) -> Result<()> {
    for task in tx.task_leases_in_section(section, &over.holder)? {
        let state = task.state(tx.now(), ctx.judge);
        if state != LeaseState::Live && is_of_same_process(over, &task) {
            close_lapsed(tx, ctx, &task, state, actor)?;
        }
    }
    Ok(())
}

pub(super) fn reason_of(state: LeaseState) -> EndReason {
    match state {
        LeaseState::Live => EndReason::Forced,
        LeaseState::Expired => EndReason::Expired,
        LeaseState::HolderDead => EndReason::HolderDied,
        LeaseState::Ended(reason) => reason,
    }
}

/// Closes the lease, appends its event, and marks its running attempt as ending. True if that attempt was charged.
pub(super) fn close(
    tx: &mut dyn Tx,
    lease: &Lease,
    reason: EndReason,
    message: Option<&str>,
    actor: &str,
    charge: bool,
) -> Result<bool> {
    tx.end_lease(lease.fence, reason)?;
    let task = lease.resource.task_id();
    let mut event = NewEvent::new(EventKind::LeaseEnded, actor).fence(lease.fence).detail(json!({
        "lease": lease.id, "resource": lease.resource.to_string(), "holder": lease.holder.to_string(),
        "reason": reason.as_str(), "message": message,
    }));
    event.task = task.as_ref();
    tx.append(event)?;
    attempt::mark_ending(tx, lease, reason.as_str(), charge, actor)
}

/// Returns the task of an ended lease, or fails it after `max_attempts`, and wakes the waiters that can proceed.
pub(super) fn return_task(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    viewer: &Viewer,
    lease: &Lease,
    (reason, why): (EndReason, &str),
    actor: &str,
    charged: bool,
) -> Result<()> {
    if let Some(id) = lease.resource.task_id()
        && let Some(task) = tx.task_row(&id, viewer)?
    {
        let mut to = lease.claimed_from.unwrap_or(TaskStatus::Pending);
        let mut why = why.to_owned();
        if charged {
            let attempts = task.attempts.saturating_add(1);
            tx.edit_task(&id, &TaskEdit { attempts: Some(attempts), ..TaskEdit::default() }, None)?;
            if attempts >= ctx.policy.max_attempts {
                to = TaskStatus::Failed;
                why = format!("{attempts} attempts broke off, the last one: {why}");
            }
        }
        if still_where_left(lease, task.status) {
            move_task(tx, &task, to, actor, lease, Some(&why), false)?;
        }
        drop_section(tx, ctx, &task, lease, reason)?;
    }
    item::return_item_of(tx, lease, why, actor)?;
    wake::freed(tx, ctx, &lease.resource)
}

/// Ends the section's lease together with the last of its holder's tasks; the caller wakes waiters. If that task's lease
/// lapsed, the section's lease ends with the same reason, because an expired lease can be revived (L7).
pub(super) fn drop_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    task: &Task,
    ended: &Lease,
    reason: EndReason,
) -> Result<()> {
    let Some(section) = task.section.as_ref().filter(|s| s.serial) else { return Ok(()) };
    let now = tx.now();
    // A lapsed lease of a task blocks nothing (L3), so it does not keep the section held either.
    let at_work = |lease: &Lease| lease.state(now, ctx.judge) == LeaseState::Live;
    let others = tx.task_leases_in_section(&section.id, &ended.holder)?;
    if others.iter().any(|lease| lease.fence != ended.fence && at_work(lease)) {
        return Ok(());
    }
    let resource = Resource::section(&section.id);
    let its_own = |lease: &Lease| lease.held_by(&ended.holder) && is_of_same_process(lease, ended);
    let Some(lease) = tx.open_lease(&resource)?.filter(its_own) else { return Ok(()) };
    let reason = match reason {
        EndReason::Expired | EndReason::HolderDied => reason,
        EndReason::Released | EndReason::Completed | EndReason::Forced => EndReason::Released,
    };
    close(tx, &lease, reason, None, &ended.holder.id, false)?;
    close_lapsed_in_section(tx, ctx, &section.id, &lease, &ended.holder.id)
}

pub(super) fn move_task(
    tx: &mut dyn Tx,
    task: &Task,
    to: TaskStatus,
    actor: &str,
    lease: &Lease,
    why: Option<&str>,
    rejected: bool,
) -> Result<()> {
    if task.status == to {
        return Ok(());
    }
    let detail = if rejected { json!({"message": why, "rejected": true}) } else { json!({"message": why}) };
    let event = NewEvent::new(EventKind::TaskStatus, actor)
        .task(&task.id)
        .status(task.status, to)
        .fence(lease.fence)
        .detail(detail);
    tx.set_status(&task.id, to, event)
}

/// Whether the task is in progress, or has the status that a clean-up returned it to: its status was not changed since.
pub(super) fn still_where_left(lease: &Lease, status: TaskStatus) -> bool {
    status == TaskStatus::InProgress || Some(status) == lease.claimed_from
}

pub(super) fn read(tx: &dyn Tx, id: &TaskId, viewer: &Viewer) -> Result<Task> {
    tx.task_row(id, viewer)?.ok_or_else(|| missing(id))
}

pub(super) fn missing(id: &TaskId) -> Error {
    Error::TaskNotFound { reference: id.to_string() }
}
