//! Picks the next task: from the section that the runner kept, then a review, then any ready task. If there is none,
//! finds the reason.

use tenure_core::error::{Locked, ReservedWork};
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Grant, Terms, Verdict};
use tenure_core::lease::{EndReason, Lease, LeaseState, Resource};
use tenure_core::store::{TaskFilter, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use super::slot::RunnerSlot;
use super::{Purpose, RunnerContext};

/// The result of picking work.
pub(super) enum Pick {
    Task(Box<Grant>, Purpose),
    /// A task that only the lease of another holder keeps from this runner.
    Locked(Box<Locked>),
    /// Work is ready, but reserved for earlier waiters.
    Queued(ReservedWork),
    /// Pending tasks that wait for something else, described by the text.
    Blocked(String),
    /// No unfinished task.
    Nothing,
}

/// Claims the next task, or finds the reason why there is none, in one transaction.
///
/// `section` is the section that the runner kept from its last task; it is released as soon as nothing in it is ready.
/// `waiting` is what the runner has waited for until now.
pub(super) fn pick_work(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    interrupted: Option<&TaskId>,
    section: Option<&Lease>,
    terms: &Terms,
    waiting: Option<&Resource>,
) -> Result<Pick> {
    if let Some(id) = interrupted
        && let Pick::Task(grant, purpose) = pick_interrupted(tx, cx, slot, id, terms)?
    {
        return Ok(Pick::Task(grant, purpose));
    }
    if let Some(id) = &cx.options.task {
        return pick_task(tx, cx, slot, id, terms);
    }
    let reviewing = cx.options.reviewer.is_some();
    if reviewing && let Some(grant) = pick_review(tx, cx, slot, terms)? {
        release_section_unless_needed(tx, cx, section, &grant)?;
        return Ok(Pick::Task(Box::new(grant), Purpose::Review));
    }
    if let Some(kept) = section.and_then(|lease| lease.resource.section_id()) {
        if let Some(grant) = kernel::acquire_next(tx, &cx.exec.ctx, &slot.caller, Some(&kept), terms)? {
            return Ok(Pick::Task(Box::new(grant), Purpose::Work));
        }
        if let Some(lease) = section {
            kernel::release_resource(tx, &cx.exec.ctx, lease, EndReason::Released)?;
        }
    }
    let wanted = cx.options.section.as_ref().map(|(id, _)| id);
    if let Some(grant) = kernel::acquire_next(tx, &cx.exec.ctx, &slot.caller, wanted, terms)? {
        return Ok(Pick::Task(Box::new(grant), Purpose::Work));
    }
    // Closing a lapsed lease may have put a task back into review.
    if reviewing && let Some(grant) = pick_review(tx, cx, slot, terms)? {
        return Ok(Pick::Task(Box::new(grant), Purpose::Review));
    }
    why_nothing(tx, cx, slot, terms, waiting)
}

/// Releases the kept section if the granted review is in another one.
pub(super) fn release_section_unless_needed(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    section: Option<&Lease>,
    grant: &Grant,
) -> Result<()> {
    let next = section_of(tx, grant)?.map(|lease| lease.resource);
    match section.filter(|kept| Some(&kept.resource) != next.as_ref()) {
        Some(kept) => kernel::release_resource(tx, &cx.exec.ctx, kept, EndReason::Released),
        None => Ok(()),
    }
}

/// The task at which the session was interrupted comes first, if it is unfinished. Its status decides that, not the
/// checkpoint: it may have been finished, deleted or moved since.
fn pick_interrupted(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    id: &TaskId,
    terms: &Terms,
) -> Result<Pick> {
    let viewer = cx.exec.ctx.viewer(tx, Some(&slot.caller.holder))?;
    let Some(task) = tx.task(id, &viewer)? else { return Ok(Pick::Nothing) };
    let wanted = cx.options.section.as_ref().map(|(id, _)| id);
    let here = wanted.is_none_or(|wanted| task.section.as_ref().is_some_and(|s| s.id == *wanted));
    if here { pick_task(tx, cx, slot, id, terms) } else { Ok(Pick::Nothing) }
}

pub(super) fn pick_task(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    id: &TaskId,
    terms: &Terms,
) -> Result<Pick> {
    match kernel::acquire_task(tx, &cx.exec.ctx, &slot.caller, id, terms) {
        Ok(Verdict::Granted(grant)) => Ok(Pick::Task(grant, Purpose::Work)),
        Ok(Verdict::Refused(locked)) => Ok(Pick::Locked(locked)),
        Err(Error::NotReady { task, blocked_by }) => {
            Ok(Pick::Blocked(format!("{} waits for {}", task.key, blocked_by.join(", "))))
        }
        Err(Error::InvalidTransition { task, .. })
            if task.status == TaskStatus::Review && cx.options.reviewer.is_some() && !terms.review =>
        {
            let terms = Terms { review: true, ..terms.clone() };
            Ok(match pick_task(tx, cx, slot, id, &terms)? {
                Pick::Task(grant, _) => Pick::Task(grant, Purpose::Review),
                found => found,
            })
        }
        // Not an error: the task's lapsed lease was closed in this transaction, which must be committed.
        Ok(Verdict::CannotStart { .. }) | Err(Error::InvalidTransition { .. }) => Ok(Pick::Nothing),
        Err(error) => Err(error),
    }
}

fn pick_review(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    terms: &Terms,
) -> Result<Option<Grant>> {
    let wanted = cx.options.section.as_ref().map(|(id, _)| id);
    kernel::acquire_next_review(tx, &cx.exec.ctx, &slot.caller, wanted, terms)
}

/// The reason why nothing was granted: earlier waiters, a lease, a dependency, or no unfinished task. Only reads, so
/// that it never leaves the runner with a task (R4).
fn why_nothing(
    tx: &dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    terms: &Terms,
    waiting: Option<&Resource>,
) -> Result<Pick> {
    let wanted = cx.options.section.as_ref().map(|(id, _)| id);
    let viewer = cx.exec.ctx.viewer(tx, Some(&slot.caller.holder))?;
    let mine = terms.ticket.as_ref().map(|(number, _)| *number);
    if let Some(reserved) = kernel::reserved_work(tx, &cx.exec.ctx, wanted, mine)? {
        return Ok(Pick::Queued(reserved));
    }
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::Pending]),
        section: wanted.cloned(),
        limit: 100,
        ..TaskFilter::default()
    };
    let mut blocked = None;
    for task in tx.list_tasks(&filter, &viewer)?.0 {
        if let Some(first) = task.blocked_by.first() {
            blocked.get_or_insert_with(|| format!("{} waits for {first}", task.key));
        } else if let Some(locked) = kernel::in_the_way(tx, &cx.exec.ctx, &slot.caller, &task, terms)? {
            return Ok(Pick::Locked(Box::new(locked)));
        }
    }
    if let Some(locked) = still_held(tx, cx, slot, waiting)? {
        return Ok(Pick::Locked(Box::new(locked)));
    }
    let why = match blocked {
        None => held_by_others(tx, cx, slot)?,
        blocked => blocked,
    };
    Ok(why.map_or(Pick::Nothing, Pick::Blocked))
}

/// Tasks in progress elsewhere, perhaps on another machine: nothing is ready, but not everything is done.
fn held_by_others(tx: &dyn Tx, cx: &RunnerContext<'_>, slot: &RunnerSlot) -> Result<Option<String>> {
    let viewer = cx.exec.ctx.viewer(tx, Some(&slot.caller.holder))?;
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::InProgress]),
        section: cx.options.section.as_ref().map(|(id, _)| id.clone()),
        limit: 1,
        ..TaskFilter::default()
    };
    let held = tx.list_tasks(&filter, &viewer)?.0.into_iter().find_map(|task| Some((task.key, task.lease?)));
    Ok(held.map(|(key, lease)| {
        let machine = lease.process.map(|process| format!(" on {}", process.hostname)).unwrap_or_default();
        format!("{key} is being worked on by {}{machine}", lease.holder)
    }))
}

/// A runner that waits for a section stays in the queue while the holder works on the section's last task,
/// because that task may be returned.
fn still_held(
    tx: &dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    waiting: Option<&Resource>,
) -> Result<Option<Locked>> {
    let Some(resource) = waiting else { return Ok(None) };
    let (Some(id), Some(lease)) = (resource.section_id(), tx.open_lease(resource)?) else { return Ok(None) };
    let live = lease.state(tx.now(), cx.exec.ctx.judge) == LeaseState::Live;
    if !live || lease.held_by(&slot.caller.holder) {
        return Ok(None);
    }
    let name = tx.section(&id)?.map(|section| section.name).unwrap_or_default();
    kernel::locked(tx, resource.clone(), &name, None, Some(lease), &[]).map(Some)
}

/// The lease of the serial section that was granted with a task.
pub(super) fn section_of(tx: &dyn Tx, grant: &Grant) -> Result<Option<Lease>> {
    match grant.task.section.as_ref().filter(|s| s.serial) {
        Some(section) => tx.open_lease(&Resource::section(&section.id)),
        None => Ok(None),
    }
}
