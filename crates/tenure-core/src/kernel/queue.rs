//! Tickets: taking, refreshing and removing one, and counting those before a caller.
//!
//! For a slot, a session or a job, the live tickets for the resource are served in the order of arrival. Tickets for tasks
//! have one order in the whole project; see [`work_queue`](super::work_queue).

use super::work_queue::Reservations;
use crate::context::Context;
use crate::error::Result;
use crate::holder::{Caller, Incarnation};
use crate::id::SectionId;
use crate::lease::{Resource, Ticket};
use crate::store::{NewTicket, Tx, View, Viewer};

/// The live tickets for `resource` before `mine`, or all of them for a caller without a ticket.
///
/// A ticket that is gone or was not refreshed in time does not count; its process is treated as a newcomer. The waiters
/// for a section are those that want any task of it, or a particular one.
pub fn waiters_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<Vec<Ticket>> {
    let section = resource.section_id();
    let tasks = section.is_some() || resource.is_work();
    let mut queue = if tasks { view.work_tickets()? } else { view.tickets(resource)? };
    queue.retain(|ticket| is_live(view, viewer, ticket));
    if let Some(place) = queue.iter().position(|ticket| Some(ticket.number) == mine) {
        queue.truncate(place);
    }
    match section {
        Some(section) => wanting_section(view, viewer, &section, queue),
        None => {
            queue.retain(|ticket| ticket.resource == *resource);
            Ok(queue)
        }
    }
}

/// The tickets that want any task of the section, or one of its tasks.
fn wanting_section(
    view: &dyn View,
    viewer: &Viewer,
    section: &SectionId,
    queue: Vec<Ticket>,
) -> Result<Vec<Ticket>> {
    let viewer = Viewer { me: None, ..viewer.clone() };
    let mut known: Vec<(Resource, bool)> = vec![(Resource::ready(Some(section)), true)];
    let mut found = Vec::new();
    for ticket in queue {
        let wish = &ticket.resource;
        let inside = match (known.iter().find(|(known, _)| known == wish), wish.task_id()) {
            (Some((_, inside)), _) => *inside,
            (None, None) => false,
            (None, Some(id)) => {
                let of = view.task_row(&id, &viewer)?.and_then(|task| task.section);
                let inside = of.is_some_and(|of| of.id == *section);
                known.push((wish.clone(), inside));
                inside
            }
        };
        if inside {
            found.push(ticket);
        }
    }
    Ok(found)
}

pub(super) fn is_live(view: &dyn View, viewer: &Viewer, ticket: &Ticket) -> bool {
    ticket.is_fresh(view.now()) && !viewer.is_dead(&ticket.process)
}

/// The number of live waiters before the ticket `mine`, or before a newcomer.
pub fn count_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<usize> {
    Ok(waiters_before(view, viewer, resource, mine)?.len())
}

/// A process that waits, as its ticket records it.
#[derive(Debug, Clone, Copy)]
pub struct Waiter<'a> {
    pub caller: &'a Caller,
    pub process: &'a Incarnation,
    pub doorbell: Option<&'a str>,
    /// It also takes tasks that are in `review`.
    pub review: bool,
}

/// Adds a ticket for `wish`, or refreshes `ticket` if it is for the same.
///
/// A waiter has one ticket at a time: one for something else is removed, and the waiters that can proceed because of it
/// are woken.
pub fn enqueue(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    waiter: &Waiter<'_>,
    wish: &Resource,
    ticket: Option<(i64, &Resource)>,
) -> Result<i64> {
    if let Some((number, of)) = ticket {
        if of == wish && tx.refresh_ticket(number)? {
            return Ok(number);
        }
        dequeue(tx, ctx, number, of)?;
    }
    tx.insert_ticket(&NewTicket {
        resource: wish.clone(),
        holder: waiter.caller.holder.clone(),
        process: waiter.process.clone(),
        doorbell: waiter.doorbell.map(str::to_owned),
        life: ctx.policy.ticket_life,
        review: waiter.review,
    })
}

/// Removes a ticket and wakes the waiters that can proceed because of it: the first one for `resource`, or those that
/// get a task only now.
pub fn dequeue(tx: &mut dyn Tx, ctx: &Context<'_>, number: i64, resource: &Resource) -> Result<()> {
    if !resource.is_work() {
        tx.delete_ticket(number)?;
        return super::wake::wake_first(tx, ctx, resource);
    }
    let before: Vec<i64> =
        Reservations::before(tx, ctx, None)?.waiters_to_wake().map(|ticket| ticket.number).collect();
    tx.delete_ticket(number)?;
    for ticket in Reservations::before(tx, ctx, None)?.waiters_to_wake() {
        if !before.contains(&ticket.number)
            && let Some(doorbell) = &ticket.doorbell
        {
            tx.ring(doorbell);
        }
    }
    Ok(())
}
