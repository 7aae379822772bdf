//! Which processes a transaction wakes after its commit. A ring is a hint to run a transaction again.

use super::ready_queue::waiters_with_work;
use crate::error::Result;
use crate::lease::{Lease, Resource, ResourceKind};
use crate::store::{LeaseFilter, Tx, Viewer};

/// Wakes the first live waiter for `resource`, and removes the tickets of dead processes before it.
pub(super) fn wake_first(tx: &mut dyn Tx, viewer: &Viewer, resource: &Resource) -> Result<()> {
    let (dead, mut line): (Vec<_>, Vec<_>) =
        tx.tickets(resource)?.into_iter().partition(|ticket| viewer.is_dead(&ticket.process));
    for ticket in dead {
        tx.delete_ticket(ticket.number)?;
    }
    line.retain(|ticket| super::queue::is_live(tx, viewer, ticket));
    let first = line.into_iter().find_map(|ticket| ticket.doorbell);
    if let Some(doorbell) = first {
        tx.ring(&doorbell);
    }
    Ok(())
}

/// Called when a task may have become ready. Wakes the waiters that get ready work, and every runner whose
/// slot has not lapsed.
pub(crate) fn work_appeared(tx: &mut dyn Tx, viewer: &Viewer) -> Result<()> {
    for ticket in tx.ready_tickets()? {
        if viewer.is_dead(&ticket.process) {
            tx.delete_ticket(ticket.number)?;
        }
    }
    for doorbell in waiters_with_work(tx, viewer)?.into_iter().filter_map(|ticket| ticket.doorbell) {
        tx.ring(&doorbell);
    }
    let slots =
        tx.leases(&LeaseFilter { kinds: Some(vec![ResourceKind::Runner]), ..LeaseFilter::default() })?;
    for slot in slots {
        let is_dead = slot.process.as_ref().is_some_and(|process| viewer.is_dead(process));
        if let Some(doorbell) = slot.doorbell
            && slot.expires_at > tx.now()
            && !is_dead
        {
            tx.ring(&doorbell);
        }
    }
    Ok(())
}

/// Wakes the processes that wait for messages to this recipient; without a recipient, all of them.
pub(crate) fn message_arrived(tx: &mut dyn Tx, viewer: &Viewer, to: Option<&str>) -> Result<()> {
    for ticket in super::queue::live_before(tx, viewer, &Resource::messages(), None)? {
        if to.is_none_or(|to| to == ticket.holder.id)
            && let Some(doorbell) = ticket.doorbell
        {
            tx.ring(&doorbell);
        }
    }
    Ok(())
}

/// Wakes the supervisor of an evicted lease, so that it stops at once instead of at its next heartbeat.
pub(super) fn holder(tx: &mut dyn Tx, lease: &Lease) {
    if let Some(doorbell) = &lease.doorbell {
        tx.ring(doorbell);
    }
}
