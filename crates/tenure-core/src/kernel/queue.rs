//! The line before a resource: first come, first served, among live waiters.

use std::time::Duration;

use super::ready_queue::waiters_with_work;
use crate::error::Result;
use crate::holder::{Caller, Incarnation};
use crate::lease::{Resource, Ticket};
use crate::store::{NewTicket, Tx, View, Viewer};

/// The live tickets of others that stand before `mine`, or before everybody who has none.
///
/// A ticket that is gone, or was silent for too long, has lost its place: who shows it is a newcomer.
pub(super) fn live_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<Vec<Ticket>> {
    let mut line = view.tickets(resource)?;
    line.retain(|ticket| is_live(view, viewer, ticket));
    if let Some(place) = line.iter().position(|ticket| Some(ticket.number) == mine) {
        line.truncate(place);
    }
    Ok(line)
}

pub(super) fn is_live(view: &dyn View, viewer: &Viewer, ticket: &Ticket) -> bool {
    ticket.refreshed_at > view.now().before(viewer.ticket_life) && !viewer.is_dead(&ticket.process)
}

/// How many live waiters stand before a newcomer, or before the ticket `mine`.
pub fn count_before(
    view: &dyn View,
    viewer: &Viewer,
    resource: &Resource,
    mine: Option<i64>,
) -> Result<usize> {
    Ok(live_before(view, viewer, resource, mine)?.len())
}

/// Takes a place in the line, or keeps the one that `ticket` is if it is for this resource.
///
/// A waiter holds one ticket at a time: a place in another line is given up, and whoever now stands first there is told.
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

/// Is seen in line again. False if the place was lost meanwhile, by being silent for too long.
pub fn refresh_ticket(tx: &mut dyn Tx, life: Duration, number: i64) -> Result<bool> {
    let silent_since = tx.now().before(life);
    tx.refresh_ticket(number, silent_since)
}

/// Removes a ticket and wakes the waiters that this lets in: the next one for `resource`, or those to which ready work falls
/// only now.
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
