//! Renewing: the holder moves its lease's expiry to the present time plus the ttl (L7).

use std::time::Duration;

use serde_json::json;

use super::acquire::{acquired, grant, name_of};
use super::lease_state::{claim_of, section_state};
use super::work_queue::Reservations;
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::{Caller, Holder};
use crate::id::{SectionId, TaskId};
use crate::lease::{Lease, LeaseState, Resource, ResourceKind};
use crate::store::{LeaseBeat, LeaseFilter, NewLease, Tx, View};
use crate::task::TaskStatus;

#[derive(Debug, Clone, Copy, Default)]
pub struct Beat {
    /// The new ttl, if it changes.
    pub ttl: Option<Duration>,
    /// The least time for which the section is kept; by default the task's ttl.
    pub section_ttl: Option<Duration>,
    /// Revive the lease if it has expired and its resource was not granted since.
    pub revive: bool,
}

pub fn renew(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    beat: Beat,
) -> Result<Lease> {
    let id = TaskId::new(&task.id);
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let found =
        tx.task_row(&id, &viewer)?.ok_or_else(|| Error::TaskNotFound { reference: task.key.clone() })?;
    let section = found.section.clone().filter(|s| s.serial);
    let claim = claim_of(tx, ctx, caller, task)?;
    let mut lease = claim.lease.clone();
    let lost = || claim.lost(name_of(&found), None, caller);
    match claim.state {
        LeaseState::Live => {}
        LeaseState::Expired if beat.revive => {
            let untouched =
                found.status == TaskStatus::InProgress || Some(found.status) == lease.claimed_from;
            let taken = match &section {
                Some(section) => section_taken(tx, ctx, &section.id, &lease)?,
                None => false,
            };
            // Work that nothing supervises may have stopped, so a waiter comes first.
            let reserved =
                lease.process.is_none() && Reservations::before(tx, ctx, None)?.of(&found).is_some();
            if !untouched || taken || reserved {
                return Err(lost());
            }
            revive(tx, &lease, &id, found.status)?;
        }
        _ => return Err(lost()),
    }
    lease.ttl = beat.ttl.unwrap_or(lease.ttl);
    lease.heartbeat_at = tx.now();
    lease.expires_at = tx.now().after(lease.ttl);
    lease.ended = None;
    tx.beat(lease.fence, &beat_of(&lease))?;
    if let Some(section) = &section {
        let ttl = beat.section_ttl.unwrap_or(lease.ttl).max(lease.ttl);
        if !renew_section(tx, ctx, &section.id, &lease, ttl)? {
            bring_section_back(tx, ctx, &section.id, &lease, ttl)?;
        }
        if claim.state != LeaseState::Live {
            // The holder may continue in the section, also with a task that it waits for.
            super::wake::work_appeared(tx, ctx)?;
        }
    }
    Ok(lease)
}

/// How long after its end an expired lease may be renewed by a holder that nothing supervises.
const RENEWABLE: Duration = Duration::from_hours(24);
/// At most this many expired leases are considered.
const MOST_EXPIRED: u64 = 50;

/// The leases of tasks that `holder` has without a process and may renew: open ones, and those that a clean-up has closed as
/// expired while no other holder was granted the task since. [`renew`] decides whether a lease is revived.
pub fn renewable(view: &dyn View, ctx: &Context<'_>, holder: &Holder) -> Result<Vec<Lease>> {
    let open = LeaseFilter {
        kinds: Some(vec![ResourceKind::Task]),
        holder: Some(holder.clone()),
        ..LeaseFilter::default()
    };
    let closed = LeaseFilter {
        expired_since: Some(view.now().before(RENEWABLE)),
        newest_first: true,
        limit: Some(MOST_EXPIRED),
        ..open.clone()
    };
    let mut found = view.leases(&open)?;
    for lease in view.leases(&closed)? {
        if view.latest_lease(&lease.resource)?.is_some_and(|latest| latest.is_same(&lease)) {
            found.push(lease);
        }
    }
    found.retain(|lease| {
        let state = lease.state(view.now(), ctx.judge);
        lease.process.is_none() && matches!(state, LeaseState::Live | LeaseState::Expired)
    });
    Ok(found)
}

/// Whether the caller still holds the task.
pub fn check(view: &dyn View, ctx: &Context<'_>, caller: &Caller, task: &TaskName) -> Result<Lease> {
    let claim = claim_of(view, ctx, caller, task)?;
    if claim.state == LeaseState::Live {
        Ok(claim.lease)
    } else {
        Err(claim.lost(task.clone(), None, caller))
    }
}

/// Moves the expiry of the section's lease along with the task's. False if the section's lease does not cover the task.
pub(super) fn renew_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    id: &SectionId,
    task: &Lease,
    ttl: Duration,
) -> Result<bool> {
    let open = tx.open_lease(&Resource::section(id))?;
    let Some(mut section) = open.filter(|lease| covers(lease, task)) else { return Ok(false) };
    if task.resource.kind == ResourceKind::Task {
        // The section records a process only if all live tasks in it have that process. Otherwise its death would free
        // the section while another task is at work.
        let mut tasks = tx.task_leases_in_section(id, &task.holder)?;
        tasks.retain(|other| other.state(tx.now(), ctx.judge) == LeaseState::Live);
        if tasks.iter().all(|other| other.process == task.process) {
            section.process.clone_from(&task.process);
            section.doorbell.clone_from(&task.doorbell);
        } else {
            section.process = None;
        }
    }
    section.heartbeat_at = tx.now();
    section.expires_at = section.expires_at.max(tx.now().after(ttl)).max(task.expires_at);
    tx.beat(section.fence, &beat_of(&section))?;
    Ok(true)
}

pub(super) fn beat_of(lease: &Lease) -> LeaseBeat {
    LeaseBeat {
        process: lease.process.clone(),
        doorbell: lease.doorbell.clone(),
        ttl: lease.ttl,
        heartbeat_at: lease.heartbeat_at,
        expires_at: lease.expires_at,
    }
}

fn revive(tx: &mut dyn Tx, lease: &Lease, id: &TaskId, status: TaskStatus) -> Result<()> {
    if lease.ended.is_some() {
        tx.reopen_lease(lease.fence)?;
        super::attempt::mark_running(tx, lease)?;
    }
    let actor = &lease.holder.id;
    let detail = json!({"lease": lease.id, "resource": lease.resource.to_string()});
    tx.append(NewEvent::new(EventKind::LeaseRevived, actor).task(id).fence(lease.fence).detail(detail))?;
    if status != TaskStatus::InProgress {
        let event = NewEvent::new(EventKind::TaskStatus, actor)
            .task(id)
            .status(status, TaskStatus::InProgress)
            .fence(lease.fence);
        tx.set_status(id, TaskStatus::InProgress, event)?;
    }
    Ok(())
}

/// Whether `task` is held under the lease `section`. Two processes that share a name are two holders.
fn covers(section: &Lease, task: &Lease) -> bool {
    section.held_by(&task.holder) && (section.process.is_none() || section.process == task.process)
}

/// Whether another process holds the section now, even under the same name, or held it last and it is
/// reserved for a waiter. Then the holder of this task has to claim it again.
fn section_taken(tx: &mut dyn Tx, ctx: &Context<'_>, id: &SectionId, task: &Lease) -> Result<bool> {
    let resource = Resource::section(id);
    let Some(latest) = tx.latest_lease(&resource)?.filter(|latest| !covers(latest, task)) else {
        return Ok(false);
    };
    if section_state(tx, ctx, &latest)? == LeaseState::Live {
        return Ok(true);
    }
    let reservations = Reservations::before(tx, ctx, None)?;
    let waiter = reservations.of_serial_section(id).map(|made| &made.ticket.process);
    Ok(waiter.is_some_and(|waiter| Some(waiter) != task.process.as_ref()))
}

/// Revives the section's lease, or grants a new one, after a clean-up closed it together with the task's lease.
fn bring_section_back(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    id: &SectionId,
    task: &Lease,
    ttl: Duration,
) -> Result<()> {
    let resource = Resource::section(id);
    if let Some(latest) = tx.latest_lease(&resource)? {
        let state = section_state(tx, ctx, &latest)?;
        match state {
            // Another process holds the section, and this task does not belong to that lease, so the lease is left as
            // it is.
            LeaseState::Live => return Ok(()),
            // The same lease is reopened, so that a heartbeat with its fence still succeeds.
            LeaseState::Expired if !latest.is_open() && covers(&latest, task) => {
                tx.reopen_lease(latest.fence)?;
                return renew_section(tx, ctx, id, task, ttl).map(drop);
            }
            state if latest.is_open() => {
                super::end::close_lapsed(tx, ctx, &latest, state, &task.holder.id)?;
            }
            _ => {}
        }
    }
    let new = NewLease {
        id: ctx.ids.lease(),
        key: ctx.ids.lease_key(),
        resource,
        holder: task.holder.clone(),
        process: task.process.clone(),
        doorbell: task.doorbell.clone(),
        ttl,
        expires_at: tx.now().after(ttl),
        claimed_from: None,
        messages_through: 0,
    };
    let lease = grant(tx, ctx, new)?;
    tx.append(acquired(&lease, None))
}
