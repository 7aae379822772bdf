//! The queue for a resource: first come, first served, among live tickets.

use std::time::Duration;

use super::ready_queue::waiters_with_work;
use crate::error::Result;
use crate::holder::{Caller, Incarnation};
use crate::lease::{Resource, Ticket};
use crate::store::{NewTicket, Tx, View, Viewer};

/// The live tickets before `mine`, or all of them for a caller without a ticket.
///
/// A ticket that is gone or was not refreshed in time does not count; its process is treated as a newcomer.
pub(super) fn live_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<Vec<Ticket>> {
    let mut queue = view.tickets(resource)?;
    queue.retain(|ticket| is_live(view, viewer, ticket));
    if let Some(position) = queue.iter().position(|ticket| Some(ticket.number) == mine) {
        queue.truncate(position);
    }
    Ok(queue)
}

pub(super) fn is_live(view: &dyn View, viewer: &Viewer, ticket: &Ticket) -> bool {
    ticket.refreshed_at > view.now().before(viewer.ticket_life) && !viewer.is_dead(&ticket.process)
}

/// The number of live waiters before the ticket `mine`, or before a newcomer.
pub fn count_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<usize> {
    Ok(live_before(view, viewer, resource, mine)?.len())
}

/// Adds a ticket to the queue for `resource`, or refreshes `ticket` if it is for this resource.
///
/// A waiter has one ticket at a time: one for another resource is removed, and the next waiter there is woken.
pub fn enqueue(
    tx: &mut dyn Tx,
    viewer: &Viewer,
    resource: &Resource,
    caller: &Caller,
    process: &Incarnation,
    doorbell: Option<&str>,
    ticket: Option<(i64, &Resource)>,
) -> Result<i64> {
    if let Some((number, of)) = ticket {
        if of == resource && refresh_ticket(tx, viewer.ticket_life, number)? {
            return Ok(number);
        }
        dequeue(tx, viewer, number, of)?;
    }
    tx.insert_ticket(&NewTicket {
        resource: resource.clone(),
        holder: caller.holder.clone(),
        process: process.clone(),
        doorbell: doorbell.map(str::to_owned),
    })
}

/// Refreshes a ticket. False if it no longer counts, because it was not refreshed for too long.
pub fn refresh_ticket(tx: &mut dyn Tx, life: Duration, number: i64) -> Result<bool> {
    let silent_since = tx.now().before(life);
    tx.refresh_ticket(number, silent_since)
}

/// Removes a ticket and wakes the waiters that can proceed because of it: the first one for `resource`, or those that
/// get ready work only now.
pub fn dequeue(tx: &mut dyn Tx, viewer: &Viewer, number: i64, resource: &Resource) -> Result<()> {
    if !resource.is_ready_work() {
        tx.delete_ticket(number)?;
        return super::wake::wake_first(tx, viewer, resource);
    }
    let before = waiters_with_work(tx, viewer)?;
    tx.delete_ticket(number)?;
    for ticket in waiters_with_work(tx, viewer)? {
        if before.iter().all(|known| known.number != ticket.number)
            && let Some(doorbell) = &ticket.doorbell
        {
            tx.ring(doorbell);
        }
    }
    Ok(())
}
