//! What is held besides tasks: a runner's slot, a session, a job, an item, and a section that a runner keeps.

use std::time::Duration;

use super::acquire::{Terms, acquired, grant, leave_own_line, own_number};
use super::end::{bury, bury_with_section, close, force};
use super::line::ahead;
use super::refusal::locked;
use super::renew::beat_of;
use super::standing::{same_holder, stands};
use super::wake;
use crate::error::{Error, Locked, Result};
use crate::holder::{Caller, Liveness};
use crate::lease::{EndReason, Lease, Resource, Standing};
use crate::store::{NewLease, Tx, View};
use crate::world::World;

/// Acquires something that is not a task: a runner's slot, a session, a job, an item.
pub fn acquire_resource(
    tx: &mut dyn Tx,
    world: &World<'_>,
    caller: &Caller,
    resource: &Resource,
    name: &str,
    terms: &Terms,
) -> Result<std::result::Result<Lease, Box<Locked>>> {
    tx.lock(resource)?;
    let eyes = world.eyes(tx, Some(&caller.holder))?;
    if let Some(lease) = tx.open_lease(resource)? {
        match lease.standing(tx.now(), world.judge) {
            Standing::Live if same_holder(&lease, caller, false) => return Ok(Ok(lease)),
            Standing::Live => {
                let queue = ahead(tx, &eyes, resource, own_number(terms, resource))?.len();
                return Ok(Err(Box::new(locked(tx, resource.clone(), name, None, Some(lease), queue)?)));
            }
            standing => bury(tx, world, &lease, standing, &caller.holder.id)?,
        }
    }
    let line = ahead(tx, &eyes, resource, own_number(terms, resource))?;
    if !line.is_empty() {
        return Ok(Err(Box::new(locked(tx, resource.clone(), name, None, None, line.len())?)));
    }
    let new = NewLease {
        id: world.ids.lease(),
        resource: resource.clone(),
        holder: caller.holder.clone(),
        process: caller.process.clone(),
        doorbell: terms.doorbell.clone(),
        ttl: terms.ttl,
        expires_at: tx.now().after(terms.ttl),
        claimed_from: None,
    };
    let lease = grant(tx, world, new)?;
    tx.append(acquired(&lease, None))?;
    leave_own_line(tx, &eyes, terms)?;
    Ok(Ok(lease))
}

/// Renews something that is not a task. `None` if it is no longer the caller's.
pub fn renew_resource(
    tx: &mut dyn Tx,
    world: &World<'_>,
    held: &Lease,
    ttl: Option<Duration>,
) -> Result<Option<Lease>> {
    tx.lock(&held.resource)?;
    let latest = tx.latest_lease(&held.resource)?;
    let Some(mut lease) = latest.filter(|l| l.fence == held.fence) else { return Ok(None) };
    match stands(&lease, tx.now(), world.judge) {
        Standing::Expired if lease.ended.is_some() => tx.reopen_lease(lease.fence)?,
        Standing::Live | Standing::Expired => {}
        _ => return Ok(None),
    }
    lease.ttl = ttl.unwrap_or(lease.ttl);
    lease.heartbeat_at = tx.now();
    lease.expires_at = tx.now().after(lease.ttl);
    lease.ended = None;
    tx.beat(lease.fence, &beat_of(&lease))?;
    Ok(Some(lease))
}

/// Refuses a write in the name of a lease that is not the latest grant, or that more than time has ended (L8).
pub fn must_hold(view: &dyn View, world: &World<'_>, held: &Lease) -> Result<()> {
    let latest = view.latest_lease(&held.resource)?.filter(|latest| latest.fence == held.fence);
    match latest.map(|lease| stands(&lease, view.now(), world.judge)) {
        Some(Standing::Live | Standing::Expired) => Ok(()),
        _ => Err(Error::WorkLost { what: held.resource.to_string() }),
    }
}

/// Does it keep everybody else out?
pub fn is_live(view: &dyn View, world: &World<'_>, lease: &Lease) -> bool {
    lease.standing(view.now(), world.judge) == Standing::Live
}

/// Ends the lease of a holder that cannot be judged: one on another machine, or one of which nothing is recorded. Whoever
/// is certainly at work is never robbed.
pub fn force_unless_alive(
    tx: &mut dyn Tx,
    world: &World<'_>,
    resource: &Resource,
    actor: &str,
) -> Result<()> {
    match tx.open_lease(resource)? {
        Some(lease) if lease.liveness(world.judge) != Some(Liveness::Alive) => {
            force(tx, world, actor, &lease).map(drop)
        }
        _ => Ok(()),
    }
}

/// Closes what time or death has ended, if it is open still.
pub(crate) fn close_lapsed(
    tx: &mut dyn Tx,
    world: &World<'_>,
    resource: &Resource,
    actor: &str,
) -> Result<()> {
    let Some(lease) = tx.open_lease(resource)? else { return Ok(()) };
    match lease.standing(tx.now(), world.judge) {
        Standing::Live => Ok(()),
        standing => bury(tx, world, &lease, standing, actor),
    }
}

/// The holder gives up something that is not a task.
pub fn release_resource(tx: &mut dyn Tx, world: &World<'_>, lease: &Lease, reason: EndReason) -> Result<()> {
    tx.lock(&lease.resource)?;
    let Some(open) = tx.open_lease(&lease.resource)?.filter(|l| l.fence == lease.fence) else {
        return Ok(());
    };
    close(tx, &open, reason, None, &open.holder.id, false)?;
    let eyes = world.eyes(tx, None)?;
    wake::first_in_line(tx, &eyes, &open.resource)?;
    if let Some(section) = open.resource.section_id() {
        bury_with_section(tx, world, &section, &open, &open.holder.id)?;
        wake::work_appeared(tx, &eyes)?;
    }
    Ok(())
}
