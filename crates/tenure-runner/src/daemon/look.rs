//! Looking for work: the section at hand first, then reviews, then whatever is ready; else what stands in the way.

use tenure_core::error::Locked;
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Grant, Terms, Verdict};
use tenure_core::lease::{EndReason, Lease, LeaseState, Resource};
use tenure_core::store::{TaskFilter, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};

use super::place::Seat;
use super::{Purpose, Site};

/// What there is to do.
pub(super) enum Found {
    Task(Box<Grant>, Purpose),
    /// Work that only another's lease keeps away.
    HeldUp(Box<Locked>),
    /// Work is ready, but reserved for waiters that came before: this many.
    Queued(usize),
    /// Pending work that waits for something else; the sentence says for what.
    Blocked(String),
    /// Everything is finished, or there is nothing at all.
    Nothing,
}

/// One transaction: takes the next task, or finds out why there is none.
///
/// `section` is the one that the runner kept from the last task; it is let go as soon as nothing in it is ready.
pub(super) fn for_work(
    tx: &mut dyn Tx,
    site: &Site<'_>,
    seat: &Seat,
    interrupted: Option<&TaskId>,
    section: Option<&Lease>,
    terms: &Terms,
) -> Result<Found> {
    if let Some(id) = interrupted
        && let Found::Task(grant, purpose) = interrupted_task(tx, site, seat, id, terms)?
    {
        return Ok(Found::Task(grant, purpose));
    }
    if let Some(id) = &site.orders.task {
        return one_task(tx, site, seat, id, terms);
    }
    let reviewing = site.orders.reviewer.is_some();
    if reviewing && let Some(grant) = a_review(tx, site, seat, terms)? {
        leave_for(tx, site, section, &grant)?;
        return Ok(Found::Task(Box::new(grant), Purpose::Review));
    }
    if let Some(kept) = section.and_then(|lease| lease.resource.section_id()) {
        if let Some(grant) = kernel::acquire_next(tx, &site.ctx, &seat.caller, Some(&kept), terms)? {
            return Ok(Found::Task(Box::new(grant), Purpose::Work));
        }
        if let Some(lease) = section {
            kernel::release_resource(tx, &site.ctx, lease, EndReason::Released)?;
        }
    }
    let wanted = site.orders.section.as_ref().map(|(id, _)| id);
    if let Some(grant) = kernel::acquire_next(tx, &site.ctx, &seat.caller, wanted, terms)? {
        return Ok(Found::Task(Box::new(grant), Purpose::Work));
    }
    // Closing a lapsed lease may have put a task back into review.
    if reviewing && let Some(grant) = a_review(tx, site, seat, terms)? {
        return Ok(Found::Task(Box::new(grant), Purpose::Review));
    }
    in_the_way(tx, site, seat, terms)
}

/// A review elsewhere ends the stay in the section at hand.
fn leave_for(tx: &mut dyn Tx, site: &Site<'_>, section: Option<&Lease>, grant: &Grant) -> Result<()> {
    let next = section_of(tx, grant)?.map(|lease| lease.resource);
    match section.filter(|kept| Some(&kept.resource) != next.as_ref()) {
        Some(kept) => kernel::release_resource(tx, &site.ctx, kept, EndReason::Released),
        None => Ok(()),
    }
}

/// The task at which the session was interrupted comes first, if it is still to be done. Its status decides that, not the
/// checkpoint: it may have been finished, deleted or moved meanwhile.
fn interrupted_task(
    tx: &mut dyn Tx,
    site: &Site<'_>,
    seat: &Seat,
    id: &TaskId,
    terms: &Terms,
) -> Result<Found> {
    let viewer = site.ctx.viewer(tx, Some(&seat.caller.holder))?;
    let Some(task) = tx.task(id, &viewer)? else { return Ok(Found::Nothing) };
    let wanted = site.orders.section.as_ref().map(|(id, _)| id);
    let here = wanted.is_none_or(|wanted| task.section.as_ref().is_some_and(|s| s.id == *wanted));
    if here { one_task(tx, site, seat, id, terms) } else { Ok(Found::Nothing) }
}

fn one_task(tx: &mut dyn Tx, site: &Site<'_>, seat: &Seat, id: &TaskId, terms: &Terms) -> Result<Found> {
    match kernel::acquire_task(tx, &site.ctx, &seat.caller, id, terms) {
        Ok(Verdict::Granted(grant)) => Ok(Found::Task(grant, Purpose::Work)),
        Ok(Verdict::Refused(locked)) => Ok(Found::HeldUp(locked)),
        Err(Error::NotReady { task, blocked_by }) => {
            Ok(Found::Blocked(format!("{} waits for {}", task.key, blocked_by.join(", "))))
        }
        Err(Error::InvalidTransition { task, .. })
            if task.status == TaskStatus::Review && site.orders.reviewer.is_some() && !terms.review =>
        {
            let terms = Terms { review: true, ..terms.clone() };
            Ok(match one_task(tx, site, seat, id, &terms)? {
                Found::Task(grant, _) => Found::Task(grant, Purpose::Review),
                found => found,
            })
        }
        // Barred: its lapsed lease was closed just now, and that is to stay.
        Ok(Verdict::Barred { .. }) | Err(Error::InvalidTransition { .. }) => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

fn a_review(tx: &mut dyn Tx, site: &Site<'_>, seat: &Seat, terms: &Terms) -> Result<Option<Grant>> {
    let viewer = site.ctx.viewer(tx, Some(&seat.caller.holder))?;
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::Review]),
        section: site.orders.section.as_ref().map(|(id, _)| id.clone()),
        limit: 50,
        ..TaskFilter::default()
    };
    let terms = Terms { review: true, ..terms.clone() };
    for task in tx.list_tasks(&filter, &viewer)?.0 {
        match kernel::acquire_task(tx, &site.ctx, &seat.caller, &task.id, &terms) {
            Ok(Verdict::Granted(grant)) => return Ok(Some(*grant)),
            // Held, or no longer in review because its lapsed lease was closed just now.
            Ok(Verdict::Refused(_) | Verdict::Barred { .. })
            | Err(Error::NotReady { .. } | Error::InvalidTransition { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The runner was granted nothing. Is that because of waiters that came before, of a lease, of a dependency, or because
/// everything is done? Only reads, so that asking never leaves the runner with a task (R4).
fn in_the_way(tx: &dyn Tx, site: &Site<'_>, seat: &Seat, terms: &Terms) -> Result<Found> {
    let wanted = site.orders.section.as_ref().map(|(id, _)| id);
    let viewer = site.ctx.viewer(tx, Some(&seat.caller.holder))?;
    let mine = terms.ticket.as_ref().map(|(number, _)| *number);
    if let Some(before) = kernel::waiters_before(tx, &viewer, wanted, mine)? {
        return Ok(Found::Queued(before));
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
        } else if let Some(locked) = kernel::in_the_way(tx, &site.ctx, &viewer, &seat.caller, &task, terms)? {
            return Ok(Found::HeldUp(Box::new(locked)));
        }
    }
    if let Some(locked) = still_in_line(tx, site, seat, terms)? {
        return Ok(Found::HeldUp(Box::new(locked)));
    }
    let why = match blocked {
        None => worked_on_elsewhere(tx, site, seat)?,
        blocked => blocked,
    };
    Ok(why.map_or(Found::Nothing, Found::Blocked))
}

/// What is left may be in other hands, perhaps on another machine: then not everything is done, although nothing is to do.
fn worked_on_elsewhere(tx: &dyn Tx, site: &Site<'_>, seat: &Seat) -> Result<Option<String>> {
    let viewer = site.ctx.viewer(tx, Some(&seat.caller.holder))?;
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::InProgress]),
        section: site.orders.section.as_ref().map(|(id, _)| id.clone()),
        limit: 1,
        ..TaskFilter::default()
    };
    let held = tx.list_tasks(&filter, &viewer)?.0.into_iter().find_map(|task| Some((task.key, task.lease?)));
    Ok(held.map(|(key, lease)| {
        let place = lease.process.map(|process| format!(" on {}", process.hostname)).unwrap_or_default();
        format!("{key} is being worked on by {}{place}", lease.holder)
    }))
}

/// A runner that queues for a section stays in the queue while the holder works on the last of it: that may come back.
fn still_in_line(tx: &dyn Tx, site: &Site<'_>, seat: &Seat, terms: &Terms) -> Result<Option<Locked>> {
    let Some((_, resource)) = &terms.ticket else { return Ok(None) };
    let (Some(id), Some(lease)) = (resource.section_id(), tx.open_lease(resource)?) else { return Ok(None) };
    let live = lease.state(tx.now(), site.ctx.judge) == LeaseState::Live;
    if !live || lease.held_by(&seat.caller.holder) {
        return Ok(None);
    }
    let name = tx.section(&id)?.map(|section| section.name).unwrap_or_default();
    kernel::locked(tx, resource.clone(), &name, None, Some(lease), 0).map(Some)
}

/// The section that was granted with a task, if it is serial.
pub(super) fn section_of(tx: &dyn Tx, grant: &Grant) -> Result<Option<Lease>> {
    match grant.task.section.as_ref().filter(|s| s.serial) {
        Some(section) => tx.open_lease(&Resource::section(&section.id)),
        None => Ok(None),
    }
}
