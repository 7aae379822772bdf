//! Releasing a lock by reference: the caller's own, a lapsed one, or with force any.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::holder::Caller;
use crate::id::TaskId;
use crate::kernel::{self, Evicted};
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::reference;
use crate::store::{Tx, View};

/// The target of a lock reference: a task, `section:NAME`, or a lease id.
#[derive(Debug, Clone)]
pub struct LockRef {
    pub resource: Resource,
    /// For display: the task's key or the section's name.
    pub name: String,
    pub lease: Option<Lease>,
}

pub fn find_lock(view: &dyn View, text: &str) -> Result<LockRef> {
    if let Some(lease) = view.lease_by_id(text)? {
        let name = name_of(view, &lease.resource)?;
        return Ok(LockRef {
            resource: lease.resource.clone(),
            name,
            lease: Some(lease).filter(Lease::is_open),
        });
    }
    if text.starts_with("section:") {
        let section = reference::section(view, text)?;
        let resource = Resource::section(&section.id);
        return Ok(LockRef { lease: view.open_lease(&resource)?, resource, name: section.name });
    }
    let task = reference::task(view, text)?;
    let resource = Resource::task(&TaskId::new(&task.id));
    Ok(LockRef { lease: view.open_lease(&resource)?, resource, name: task.key })
}

fn name_of(view: &dyn View, resource: &Resource) -> Result<String> {
    if let Some(section) = resource.section_id() {
        return Ok(view.section(&section)?.map_or_else(|| resource.id.clone(), |s| s.name));
    }
    if resource.task_id().is_some() {
        return Ok(reference::task(view, &resource.id).map_or_else(|_| resource.id.clone(), |t| t.key));
    }
    Ok(resource.to_string())
}

#[derive(Debug, Clone)]
pub struct Release {
    pub name: String,
    pub lease: Lease,
    pub state: LeaseState,
    /// Whether a live lease of another holder was ended.
    pub forced: bool,
    /// Leases that ended together with it.
    pub ended: Vec<Lease>,
}

pub fn release_lock(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
    force: bool,
) -> Result<Release> {
    let found = find_lock(tx, reference)?;
    let Some(lease) = found.lease else {
        return Err(Error::LockNotFound { reference: reference.to_owned() });
    };
    let state = lease.state(tx.now(), ctx.judge);
    let own = kernel::acts_under(&lease, caller);
    if state == LeaseState::Live && !own && !force {
        return Err(Error::StillHeld {
            message: format!("{} is held by {} until its lease ends", found.name, lease.holder),
            lease: Box::new(lease),
        });
    }
    let forced = state == LeaseState::Live && !own;
    let reason = if forced || state != LeaseState::Live { EndReason::Forced } else { EndReason::Released };
    let Evicted { ended } = kernel::end_lock(tx, ctx, caller, &lease, reason)?;
    Ok(Release { name: found.name, lease, state, forced, ended })
}
