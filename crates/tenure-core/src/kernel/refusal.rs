//! Refusals: each names the holder, the start and expiry of its lease, and the waiters before the caller.

use super::acquire::{Terms, name_of};
use super::lease_state::{same_holder, section_state};
use super::queue::waiters_before;
use super::work_queue::{Reservation, Reservations, place_for};
use crate::context::Context;
use crate::error::{Locked, QueuedWaiter, ReservedWork, Result, SectionInUse, TaskName};
use crate::holder::Caller;
use crate::id::SectionId;
use crate::lease::{Lease, LeaseState, Resource, ResourceKind, Ticket};
use crate::row_names::RowNames;
use crate::section::SectionMode;
use crate::store::{LeaseFilter, TaskFilter, View, Viewer};
use crate::task::{Task, TaskStatus};

pub fn locked(
    view: &dyn View,
    resource: Resource,
    name: &str,
    task: Option<TaskName>,
    lease: Option<Lease>,
    queue: &[Ticket],
) -> Result<Locked> {
    let age = lease.as_ref().map(|l| view.now().since(l.acquired_at)).unwrap_or_default();
    let first = queue.first().map(|ticket| queued_waiter(view, ticket)).transpose()?.map(Box::new);
    Ok(Locked { resource, name: name.to_owned(), task, lease, queue: queue.len(), first, age })
}

/// The waiter of a ticket, with its wish in words.
fn queued_waiter(view: &dyn View, ticket: &Ticket) -> Result<QueuedWaiter> {
    let mut names = RowNames::default();
    names.learn_resources(view, std::iter::once(&ticket.resource))?;
    Ok(QueuedWaiter {
        holder: ticket.holder.clone(),
        process: ticket.process.clone(),
        wish: ticket.resource.clone(),
        wish_name: names.wish(&ticket.resource),
        since: ticket.created_at,
    })
}

/// The ready work, of a section or all of it, that goes to waiters before the ticket `mine` or before a newcomer.
pub fn reserved_work(
    view: &dyn View,
    ctx: &Context<'_>,
    section: Option<&SectionId>,
    mine: Option<i64>,
) -> Result<Option<ReservedWork>> {
    let reservations = Reservations::before(view, ctx, mine)?;
    let mut made = reservations.of_section(section);
    let Some(first) = made.next() else { return Ok(None) };
    let tasks = 1 + made.count();
    Ok(Some(ReservedWork { tasks, first: queued_waiter(view, &first.ticket)? }))
}

/// The serial sections, or only `section`, whose pending tasks wait for a holder other than the viewer.
pub fn sections_in_use(
    view: &dyn View,
    ctx: &Context<'_>,
    section: Option<&SectionId>,
    viewer: &Viewer,
) -> Result<Vec<SectionInUse>> {
    let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Section]), ..LeaseFilter::default() };
    let mut found = Vec::new();
    for lease in view.leases(&filter)? {
        let Some(id) = lease.resource.section_id() else { continue };
        let is_own = viewer.me.as_ref().is_some_and(|me| lease.held_by(me));
        if is_own || section.is_some_and(|wanted| *wanted != id) {
            continue;
        }
        let pending = TaskFilter {
            statuses: Some(vec![TaskStatus::Pending]),
            section: Some(id.clone()),
            limit: 0,
            ..TaskFilter::default()
        };
        let pending = view.list_tasks(&pending, viewer)?.1;
        let serial = view.section(&id)?.filter(|section| section.mode == SectionMode::Serial);
        if let Some(section) = serial
            && pending > 0
            && section_state(view, ctx, &lease)? == LeaseState::Live
        {
            let (holder, expires_at) = (lease.holder, lease.expires_at);
            found.push(SectionInUse { name: section.name, holder, expires_at, pending });
        }
    }
    Ok(found)
}

/// Which live lease there is on a task or on its serial section.
#[derive(Debug)]
pub(super) enum Hold {
    Free,
    /// The caller's own: it may continue, whatever the queue.
    Own,
    Other(Box<Lease>),
}

/// Only reads, so that asking never acquires (R4).
pub(super) fn hold_on(view: &dyn View, ctx: &Context<'_>, caller: &Caller, task: &Task) -> Result<Hold> {
    if let Some(lease) = &task.lease
        && lease.state(view.now(), ctx.judge) == LeaseState::Live
    {
        let running = super::attempt::is_running(view, lease)?;
        let own = same_holder(lease, caller, running);
        return Ok(if own { Hold::Own } else { Hold::Other(Box::new(lease.clone())) });
    }
    let Some(section) = task.section.as_ref().filter(|section| section.serial) else { return Ok(Hold::Free) };
    let Some(lease) = view.open_lease(&Resource::section(&section.id))? else { return Ok(Hold::Free) };
    if may_continue_in(view, ctx, caller, &lease) {
        return Ok(Hold::Own);
    }
    Ok(match section_state(view, ctx, &lease)? {
        LeaseState::Live => Hold::Other(Box::new(lease)),
        _ => Hold::Free,
    })
}

/// The refusal because of another holder's live lease on the task or on its section.
pub(super) fn held(
    view: &dyn View,
    ctx: &Context<'_>,
    task: &Task,
    lease: Lease,
    terms: &Terms,
) -> Result<Locked> {
    let viewer = ctx.viewer(view, None)?;
    let queue = waiters_before(view, &viewer, &lease.resource, place_for(terms, task))?;
    let resource = lease.resource.clone();
    locked(view, resource.clone(), name_in(task, &resource), Some(name_of(task)), Some(lease), &queue)
}

/// The refusal because the task is reserved for an earlier waiter.
pub(super) fn reserved(
    view: &dyn View,
    ctx: &Context<'_>,
    task: &Task,
    made: &Reservation,
    terms: &Terms,
) -> Result<Locked> {
    let resource = match &made.section {
        Some(section) if made.task != task.id => Resource::section(section),
        _ => Resource::task(&task.id),
    };
    let viewer = ctx.viewer(view, None)?;
    let mut queue = waiters_before(view, &viewer, &resource, place_for(terms, task))?;
    queue.retain(|ticket| ticket.number != made.ticket.number);
    queue.insert(0, made.ticket.clone());
    locked(view, resource.clone(), name_in(task, &resource), Some(name_of(task)), None, &queue)
}

/// The title of the task, or the name of its section.
fn name_in<'a>(task: &'a Task, resource: &Resource) -> &'a str {
    match (&task.section, resource.section_id()) {
        (Some(section), Some(_)) => &section.name,
        _ => &task.title,
    }
}

/// What keeps `caller` from acquiring `task`, which has no unfinished dependencies: a live lease on it or on its serial
/// section, or an earlier waiter. It only reads, so that asking never acquires (R4).
pub fn in_the_way(
    view: &dyn View,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &Task,
    terms: &Terms,
) -> Result<Option<Locked>> {
    match hold_on(view, ctx, caller, task)? {
        Hold::Own => Ok(None),
        Hold::Other(lease) => held(view, ctx, task, *lease, terms).map(Some),
        Hold::Free => {
            let reservations = Reservations::before_claim(view, ctx, terms, place_for(terms, task))?;
            reservations.of(task).map(|made| reserved(view, ctx, task, made, terms)).transpose()
        }
    }
}

/// Whether the caller holds the section with a live lease, so that it may continue to work in it.
pub(super) fn may_continue_in(view: &dyn View, ctx: &Context<'_>, caller: &Caller, section: &Lease) -> bool {
    same_holder(section, caller, section.process != caller.process)
        && section.state(view.now(), ctx.judge) == LeaseState::Live
}
