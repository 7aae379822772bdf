//! Whose lease is it, and does its holder's word still count?

use crate::clock::Timestamp;
use crate::error::{Error, Lost, Result, TaskName};
use crate::holder::{Caller, Judge, Liveness};
use crate::lease::{Lease, Resource, Standing};
use crate::store::View;
use crate::world::World;

/// Does `caller` mean, by credential or by name, the life that holds `lease`? (L6)
///
/// Two windows that share one name are two workers as soon as one of them executes something, so a name alone does not
/// reach a lease under which another process is `running` an attempt.
pub fn same_holder(lease: &Lease, caller: &Caller, running: bool) -> bool {
    if caller.fence == Some(lease.fence) {
        return true;
    }
    if !lease.held_by(&caller.holder) {
        return false;
    }
    match (&lease.process, &caller.process) {
        (None, _) => true,
        (Some(theirs), Some(ours)) => theirs.process == ours.process,
        (Some(_), None) => !running,
    }
}

/// How a lease stands for its own holder, who may come late.
///
/// A clean-up between the expiry and the death of a holder must not make a difference (L8), so the death counts also
/// when the lease was closed as expired before it.
pub(super) fn stands(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> Standing {
    match lease.standing(now, judge) {
        Standing::Expired if lease.liveness(judge) == Some(Liveness::Dead) => Standing::Dead,
        standing => standing,
    }
}

/// How a section's lease stands. It ends with the last of its holder's tasks, so when those have lapsed it blocks nobody
/// either, however long it was granted for (L3). A holder that is between two tasks still has it.
pub(super) fn section_stands(view: &dyn View, world: &World<'_>, section: &Lease) -> Result<Standing> {
    let standing = section.standing(view.now(), world.judge);
    let (Standing::Live, Some(id)) = (standing, section.resource.section_id()) else { return Ok(standing) };
    let mut tasks = view.task_leases_in_section(&id, &section.holder)?;
    tasks.retain(|task| of_one_life(section, task));
    let mut standings = tasks.iter().map(|task| task.standing(view.now(), world.judge));
    let Some(first) = standings.next() else { return Ok(standing) };
    Ok(standings.fold(first, |so_far, next| match (so_far, next) {
        (Standing::Live, _) | (_, Standing::Live) => Standing::Live,
        (Standing::Expired, _) => so_far,
        _ => next,
    }))
}

/// A section that another process of the same name works in is not this task's.
pub(super) fn of_one_life(section: &Lease, task: &Lease) -> bool {
    match (&section.process, &task.process) {
        (Some(theirs), Some(ours)) => theirs.process == ours.process,
        _ => true,
    }
}

/// The lease that a caller speaks for, and how it stands.
#[derive(Debug, Clone)]
pub struct Claim {
    pub lease: Lease,
    pub standing: Standing,
}

/// Finds the lease that the caller means: the one of its fence, or the resource's latest if it is the same holder (L6).
///
/// Refused if that lease is not the latest grant of its resource: somebody has been given it since.
pub fn claim_of(view: &dyn View, world: &World<'_>, caller: &Caller, task: &TaskName) -> Result<Claim> {
    let resource = Resource::new(crate::lease::ResourceKind::Task, &task.id);
    let latest = view.latest_lease(&resource)?;
    let current = latest.clone().filter(Lease::is_open);
    let meant = match caller.fence {
        Some(fence) => view.lease_by_fence(fence)?.filter(|lease| lease.resource == resource),
        None => latest.clone().filter(|lease| same_holder(lease, caller, false)),
    };
    let Some(lease) = meant else {
        return Err(Error::NotHolder(Box::new(Lost {
            task: task.clone(),
            meant: None,
            standing: None,
            current,
            shown: caller.fence,
        })));
    };
    let standing = stands(&lease, view.now(), world.judge);
    let claim = Claim { lease, standing };
    if latest.is_some_and(|l| l.fence != claim.lease.fence) {
        return Err(claim.lost(task.clone(), current, caller));
    }
    Ok(claim)
}

impl Claim {
    pub(super) fn lost(&self, task: TaskName, current: Option<Lease>, caller: &Caller) -> Error {
        let current = current.filter(|lease| lease.fence != self.lease.fence);
        Error::LeaseLost(Box::new(Lost {
            task,
            meant: Some(self.lease.clone()),
            standing: Some(self.standing),
            current,
            shown: caller.fence,
        }))
    }
}
