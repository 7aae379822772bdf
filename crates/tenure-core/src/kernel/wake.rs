//! Which processes a transaction wakes after its commit. A ring is a hint to run a transaction again.

use super::work_queue::Reservations;
use crate::context::Context;
use crate::error::Result;
use crate::lease::{Lease, LeaseState, Resource, ResourceKind, Ticket};
use crate::store::{LeaseFilter, Tx, Viewer};

/// Called when `resource` is free. Wakes the waiters that can proceed.
pub(super) fn freed(tx: &mut dyn Tx, ctx: &Context<'_>, resource: &Resource) -> Result<()> {
    match resource.kind {
        ResourceKind::Task | ResourceKind::Section => work_appeared(tx, ctx),
        _ => wake_first(tx, ctx, resource),
    }
}

/// Wakes the first live waiter for a resource that is not a task, and removes the tickets of dead processes before it.
pub(super) fn wake_first(tx: &mut dyn Tx, ctx: &Context<'_>, resource: &Resource) -> Result<()> {
    let viewer = ctx.viewer(tx, None)?;
    let tickets = tx.tickets(resource)?;
    let mut queue = without_dead(tx, &viewer, tickets)?;
    queue.retain(|ticket| super::queue::is_live(tx, &viewer, ticket));
    let first = queue.into_iter().find_map(|ticket| ticket.doorbell);
    if let Some(doorbell) = first {
        tx.ring(&doorbell);
    }
    Ok(())
}

/// Called when a task may have become ready, or can no longer be started. Wakes the waiters that get a task, those whose
/// task can no longer be started, and the live runners that have no ticket.
pub(crate) fn work_appeared(tx: &mut dyn Tx, ctx: &Context<'_>) -> Result<()> {
    let tickets = tx.work_tickets()?;
    let mut waiting = Vec::new();
    if !tickets.is_empty() {
        let viewer = ctx.viewer(tx, None)?;
        waiting = without_dead(tx, &viewer, tickets)?;
        for doorbell in Reservations::before(tx, ctx, None)?.waiters_to_wake().filter_map(|t| t.doorbell) {
            tx.ring(&doorbell);
        }
    }
    let slots =
        tx.leases(&LeaseFilter { kinds: Some(vec![ResourceKind::Runner]), ..LeaseFilter::default() })?;
    for slot in slots {
        if let Some(doorbell) = &slot.doorbell
            && slot.state(tx.now(), ctx.judge) == LeaseState::Live
            && waiting.iter().all(|ticket| ticket.doorbell.as_ref() != Some(doorbell))
        {
            tx.ring(doorbell);
        }
    }
    Ok(())
}

fn without_dead(tx: &mut dyn Tx, viewer: &Viewer, tickets: Vec<Ticket>) -> Result<Vec<Ticket>> {
    let (dead, rest): (Vec<_>, Vec<_>) =
        tickets.into_iter().partition(|ticket| viewer.is_dead(&ticket.process));
    for ticket in dead {
        tx.delete_ticket(ticket.number)?;
    }
    Ok(rest)
}

/// Wakes the supervisor of an evicted lease, so that it stops at once instead of at its next heartbeat.
pub(super) fn holder(tx: &mut dyn Tx, lease: &Lease) {
    if let Some(doorbell) = &lease.doorbell {
        tx.ring(doorbell);
    }
}
