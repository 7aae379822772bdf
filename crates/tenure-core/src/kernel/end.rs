//! The end of a lease: its holder finishes or releases it, it lapses, or it is evicted.

use serde_json::json;

use super::acquire::name_of;
use super::finish::Finish;
use super::lease_state::{claim_of, is_of_same_process};
use super::{attempt, item, wake};
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::{Caller, HolderKind};
use crate::id::{SectionId, TaskId};
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::store::{EventFilter, LeaseFilter, TaskEdit, Tx, Viewer};
use crate::task::{Task, TaskStatus};

/// How many events of a task are searched for a repeated finish: far more than a task has after its last grant.
const RECENT: u64 = 100;

#[derive(Debug, Clone)]
pub struct Finished {
    pub task: Task,
    pub lease: Lease,
    /// False if the same finish was reported before, with the same credential.
    pub changed: bool,
}

/// The holder's report on its task, accepted only under the latest grant (L8) and applied once.
///
/// With `keep_section`, a runner keeps the section's lease for the section's next task.
pub fn finish(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    finish: Finish<'_>,
    keep_section: bool,
) -> Result<Finished> {
    let id = TaskId::new(&task.id);
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let found = read(tx, &id, &viewer)?;
    let claim = claim_of(tx, ctx, caller, task)?;
    let lease = &claim.lease;
    let expected = finish.end_reason();
    match claim.state {
        LeaseState::Live => {}
        // Late, but since then the task was not granted again and its status was not changed.
        LeaseState::Expired if still_where_left(lease, found.status) => {}
        LeaseState::Ended(reason) if reason == expected && was_reported(tx, finish, lease, found.status)? => {
            return Ok(Finished { task: found, lease: claim.lease, changed: false });
        }
        _ => return Err(claim.lost(name_of(&found), None, caller)),
    }
    if lease.ended.is_some() {
        // The lease was closed as expired. It is reopened, so that it ends with the reason that the holder reports.
        tx.reopen_lease(lease.fence)?;
    }
    let mut reason = finish.message().map(str::to_owned);
    // A runner presents its process. A report without one comes from the runner's agent.
    let by_the_agent = lease.holder.kind == HolderKind::Runner && caller.process.is_none();
    let given_back = by_the_agent && matches!(finish, Finish::Release(_));
    close(tx, lease, expected, reason.as_deref(), &caller.holder.id, given_back)?;
    let mut to = finish.target(ctx, lease, &found);
    if given_back {
        // Without a charge, the runner would offer the task again at once, and a task that every agent releases would
        // never fail.
        let attempts = found.attempts.saturating_add(1);
        tx.edit_task(&id, &TaskEdit { attempts: Some(attempts), ..TaskEdit::default() }, None)?;
        if attempts >= ctx.policy.max_attempts {
            to = TaskStatus::Failed;
            let last = reason.as_deref().unwrap_or("no reason was given");
            reason =
                Some(format!("{attempts} attempts came to nothing; the last agent gave it back: {last}"));
        }
    }
    let rejected = finish.rejects(lease);
    if rejected {
        let rejections = Some(found.rejections.saturating_add(1));
        tx.edit_task(&id, &TaskEdit { rejections, ..TaskEdit::default() }, None)?;
    }
    move_task(tx, &found, to, &caller.holder.id, lease, reason.as_deref(), rejected)?;
    acknowledge_messages(tx, &id, to, &caller.holder.id)?;
    // An agent's report does not end the section's lease, which its runner holds.
    if !keep_section && !by_the_agent {
        drop_section(tx, ctx, &viewer, &found, lease, expected)?;
    }
    wake::wake_first(tx, &viewer, &lease.resource)?;
    wake::work_appeared(tx, &viewer)?;
    let task = tx.task(&id, &viewer)?.ok_or_else(|| missing(&id))?;
    Ok(Finished { task, lease: claim.lease, changed: true })
}

/// Ends an execution that has no result: the command could not be started, or a foreign signal killed it. The task is
/// returned and charged, and fails after `max_attempts`.
pub fn abort_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    why: &str,
) -> Result<Finished> {
    let id = TaskId::new(&task.id);
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let found = read(tx, &id, &viewer)?;
    let claim = claim_of(tx, ctx, caller, task)?;
    let lease = &claim.lease;
    match claim.state {
        LeaseState::Live => {}
        LeaseState::Expired if still_where_left(lease, found.status) => {}
        _ => return Err(claim.lost(name_of(&found), None, caller)),
    }
    if lease.ended.is_some() {
        tx.reopen_lease(lease.fence)?;
    }
    close(tx, lease, EndReason::Released, Some(why), &caller.holder.id, true)?;
    return_task(tx, ctx, &viewer, lease, (EndReason::Released, why), &caller.holder.id, true)?;
    let task = tx.task(&id, &viewer)?.ok_or_else(|| missing(&id))?;
    Ok(Finished { task, lease: claim.lease, changed: true })
}

/// Whether the holder has made this report before. If the status was changed since, the task's events still show the
/// report.
fn was_reported(tx: &dyn Tx, finish: Finish<'_>, lease: &Lease, status: TaskStatus) -> Result<bool> {
    if finish.already(lease, status) {
        return Ok(true);
    }
    let filter =
        EventFilter { task: lease.resource.task_id(), last: true, limit: RECENT, ..Default::default() };
    let events = tx.events(&filter)?;
    let report = events.iter().rfind(|e| e.kind == EventKind::TaskStatus && e.fence == Some(lease.fence));
    Ok(report.and_then(|event| event.to).is_some_and(|to| finish.already(lease, to)))
}

#[derive(Debug, Clone)]
pub struct Evicted {
    /// The lease that was `shown`; if it is a section's, also its holder's leases on tasks of that section.
    pub ended: Vec<Lease>,
}

/// Takes a lease away from its holder. Refused if it is no longer the one that was `shown`.
pub fn evict(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str, shown: &Lease) -> Result<Evicted> {
    end_shown(tx, ctx, actor, shown, EndReason::Forced)
}

/// The holder releases a lease, whatever its resource.
pub fn release(tx: &mut dyn Tx, ctx: &Context<'_>, actor: &str, own: &Lease) -> Result<Evicted> {
    end_shown(tx, ctx, actor, own, EndReason::Released)
}

fn end_shown(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    actor: &str,
    shown: &Lease,
    reason: EndReason,
) -> Result<Evicted> {
    let current = tx.open_lease(&shown.resource)?;
    let Some(lease) = current.filter(|lease| lease.fence == shown.fence) else {
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
        let reason = if state == LeaseState::Live { reason } else { reason_of(state) };
        close_and_return(tx, ctx, &viewer, lease, reason, actor)?;
        if reason == EndReason::Forced {
            wake::holder(tx, lease);
        }
    }
    Ok(Evicted { ended })
}

/// Ends an open lease, whatever its state, without ringing its holder.
pub(super) fn end_by_force(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease, actor: &str) -> Result<()> {
    let viewer = ctx.viewer(tx, None)?;
    close_and_return(tx, ctx, &viewer, lease, EndReason::Forced, actor)
}

fn close_and_return(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    viewer: &Viewer,
    lease: &Lease,
    reason: EndReason,
    actor: &str,
) -> Result<()> {
    close(tx, lease, reason, None, actor, false)?;
    return_task(tx, ctx, viewer, lease, (reason, reason.as_str()), actor, false)
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

/// Closes one lapsed lease, marks its attempt as ending, and returns its task to the status it was claimed from.
pub(crate) fn close_lapsed(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    state: LeaseState,
    actor: &str,
) -> Result<()> {
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
fn return_task(
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
        drop_section(tx, ctx, viewer, &task, lease, reason)?;
    }
    item::return_item_of(tx, lease, why, actor)?;
    wake::wake_first(tx, viewer, &lease.resource)?;
    wake::work_appeared(tx, viewer)
}

/// Ends the section's lease together with the last of its holder's tasks. If that task's lease lapsed, the section's
/// lease ends with the same reason, because an expired lease can be revived (L7).
pub(super) fn drop_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    viewer: &Viewer,
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
    close_lapsed_in_section(tx, ctx, &section.id, &lease, &ended.holder.id)?;
    wake::wake_first(tx, viewer, &resource)
}

fn move_task(
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
fn still_where_left(lease: &Lease, status: TaskStatus) -> bool {
    status == TaskStatus::InProgress || Some(status) == lease.claimed_from
}

/// If the task goes to completed or review, acknowledges its messages to `by` and those without a recipient.
fn acknowledge_messages(tx: &mut dyn Tx, id: &TaskId, to: TaskStatus, by: &str) -> Result<()> {
    if !matches!(to, TaskStatus::Completed | TaskStatus::Review) {
        return Ok(());
    }
    let filter = crate::store::MessageFilter {
        task: Some(id.clone()),
        limit: u64::from(u32::MAX),
        ..crate::store::MessageFilter::default()
    };
    for message in tx.messages(&filter)?.0 {
        if message.to.as_deref().is_none_or(|to| to == by) {
            tx.acknowledge(message.id, by)?;
        }
    }
    Ok(())
}

pub(super) fn read(tx: &dyn Tx, id: &TaskId, viewer: &Viewer) -> Result<Task> {
    tx.task_row(id, viewer)?.ok_or_else(|| missing(id))
}

fn missing(id: &TaskId) -> Error {
    Error::TaskNotFound { reference: id.to_string() }
}
