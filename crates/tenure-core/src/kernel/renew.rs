//! Renewing: only by the holder, from now on, for the lease's ttl (L7).

use std::time::Duration;

use serde_json::json;

use super::acquire::{acquired, grant, name_of};
use super::lease_state::{claim_of, section_state};
use super::queue::live_before;
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::lease::{Lease, LeaseState, Resource, ResourceKind};
use crate::store::{LeaseBeat, NewLease, Tx, View, Viewer};
use crate::task::TaskStatus;

#[derive(Debug, Clone, Copy, Default)]
pub struct Beat {
    /// A new ttl from now on.
    pub ttl: Option<Duration>,
    /// At least how long the section is kept; the task's ttl without it.
    pub section_ttl: Option<Duration>,
    /// A supervising process may take up its own expired lease if nothing was granted since.
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
                Some(section) => section_taken(tx, ctx, &viewer, &section.id, &lease)?,
                None => false,
            };
            if !untouched || taken {
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
    }
    Ok(lease)
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

/// Moves the section's expiry with its task's. False if the holder does not have the section.
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
        // The death of a process frees the section only if every task at work in it dies with that process.
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

/// Whether another process works in the section by now, even under the same name, or has worked there since and a waiter
/// comes next. Then the holder of this task would be a newcomer in the section.
fn section_taken(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    viewer: &Viewer,
    id: &SectionId,
    task: &Lease,
) -> Result<bool> {
    let resource = Resource::section(id);
    let Some(latest) = tx.latest_lease(&resource)?.filter(|latest| !covers(latest, task)) else {
        return Ok(false);
    };
    if section_state(tx, ctx, &latest)? == LeaseState::Live {
        return Ok(true);
    }
    let line = live_before(tx, viewer, &resource, None)?;
    Ok(line.iter().any(|ticket| Some(&ticket.process) != task.process.as_ref()))
}

/// A clean-up had released the section with the task; both are revived together.
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
            // Somebody has it under whom this task does not work; it is not ours to take.
            LeaseState::Live => return Ok(()),
            // The same grant, so that a heartbeat by its fence still succeeds.
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
        resource,
        holder: task.holder.clone(),
        process: task.process.clone(),
        doorbell: task.doorbell.clone(),
        ttl,
        expires_at: tx.now().after(ttl),
        claimed_from: None,
    };
    let lease = grant(tx, ctx, new)?;
    tx.append(acquired(&lease, None))
}
