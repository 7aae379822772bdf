//! Resources other than tasks: a runner's slot, a session, a job, an item, and a section that a runner keeps.

use std::time::Duration;

use super::acquire::{Terms, acquired, grant, own_ticket, remove_own_ticket};
use super::end::{close, close_lapsed, close_lapsed_in_section, evict};
use super::lease_state::{same_holder, state_for_holder};
use super::queue::waiters_before;
use super::refusal::locked;
use super::renew::beat_of;
use super::wake;
use crate::context::Context;
use crate::error::{Error, Locked, Result};
use crate::holder::{Caller, Liveness};
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::store::{NewLease, Tx, View};

/// Acquires something that is not a task: a runner's slot, a session, a job, an item.
pub fn acquire_resource(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    resource: &Resource,
    name: &str,
    terms: &Terms,
) -> Result<std::result::Result<Lease, Box<Locked>>> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    if let Some(lease) = tx.open_lease(resource)? {
        match lease.state(tx.now(), ctx.judge) {
            LeaseState::Live if same_holder(&lease, caller, false) => return Ok(Ok(lease)),
            LeaseState::Live => {
                let queue = waiters_before(tx, &viewer, resource, own_ticket(terms, resource))?;
                return Ok(Err(Box::new(locked(tx, resource.clone(), name, None, Some(lease), &queue)?)));
            }
            state => close_lapsed(tx, ctx, &lease, state, &caller.holder.id)?,
        }
    }
    let queue = waiters_before(tx, &viewer, resource, own_ticket(terms, resource))?;
    if !queue.is_empty() {
        return Ok(Err(Box::new(locked(tx, resource.clone(), name, None, None, &queue)?)));
    }
    let new = NewLease {
        id: ctx.ids.lease(),
        key: ctx.ids.lease_key(),
        resource: resource.clone(),
        holder: caller.holder.clone(),
        process: caller.process.clone(),
        doorbell: terms.doorbell.clone(),
        ttl: terms.ttl,
        expires_at: tx.now().after(terms.ttl),
        claimed_from: None,
        messages_through: 0,
    };
    let lease = grant(tx, ctx, new)?;
    tx.append(acquired(&lease, None))?;
    remove_own_ticket(tx, ctx, terms)?;
    Ok(Ok(lease))
}

/// Renews a lease of a resource that is not a task. `None` if it is no longer the latest lease, or ended other than by
/// expiry.
pub fn renew_resource(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    held: &Lease,
    ttl: Option<Duration>,
) -> Result<Option<Lease>> {
    let latest = tx.latest_lease(&held.resource)?;
    let Some(mut lease) = latest.filter(|latest| latest.is_same(held)) else { return Ok(None) };
    match state_for_holder(&lease, tx.now(), ctx.judge) {
        LeaseState::Expired if lease.ended.is_some() => tx.reopen_lease(lease.fence)?,
        LeaseState::Live | LeaseState::Expired => {}
        _ => return Ok(None),
    }
    lease.ttl = ttl.unwrap_or(lease.ttl);
    lease.heartbeat_at = tx.now();
    lease.expires_at = tx.now().after(lease.ttl);
    lease.ended = None;
    tx.beat(lease.fence, &beat_of(&lease))?;
    Ok(Some(lease))
}

/// Refuses a write under a lease that is not the latest grant, or that ended other than by expiry (L8).
pub fn must_hold(view: &dyn View, ctx: &Context<'_>, held: &Lease) -> Result<()> {
    let latest = view.latest_lease(&held.resource)?.filter(|latest| latest.is_same(held));
    match latest.map(|lease| state_for_holder(&lease, view.now(), ctx.judge)) {
        Some(LeaseState::Live | LeaseState::Expired) => Ok(()),
        _ => Err(Error::WorkLost { what: held.resource.to_string() }),
    }
}

/// Whether the lease is live and so blocks other holders.
pub fn is_live(view: &dyn View, ctx: &Context<'_>, lease: &Lease) -> bool {
    lease.state(view.now(), ctx.judge) == LeaseState::Live
}

/// Ends the open lease of `resource` unless its holder's process is known to be alive: for a holder on another machine,
/// or without a recorded process.
pub fn evict_unless_alive(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    resource: &Resource,
    actor: &str,
) -> Result<()> {
    match tx.open_lease(resource)? {
        Some(lease) if lease.liveness(ctx.judge) != Some(Liveness::Alive) => {
            evict(tx, ctx, actor, &lease).map(drop)
        }
        _ => Ok(()),
    }
}

/// Closes the open lease of `resource` if it has lapsed.
pub(crate) fn close_if_lapsed(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    resource: &Resource,
    actor: &str,
) -> Result<()> {
    let Some(lease) = tx.open_lease(resource)? else { return Ok(()) };
    match lease.state(tx.now(), ctx.judge) {
        LeaseState::Live => Ok(()),
        state => close_lapsed(tx, ctx, &lease, state, actor),
    }
}

/// Ends a lease of a resource that is not a task, on behalf of its holder. No effect if it is not open.
pub fn release_resource(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease, reason: EndReason) -> Result<()> {
    let Some(open) = tx.open_lease(&lease.resource)?.filter(|open| open.is_same(lease)) else {
        return Ok(());
    };
    close(tx, &open, reason, None, &open.holder.id, false)?;
    if let Some(section) = open.resource.section_id() {
        close_lapsed_in_section(tx, ctx, &section, &open, &open.holder.id)?;
    }
    wake::freed(tx, ctx, &open.resource)
}
