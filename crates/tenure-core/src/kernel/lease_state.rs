//! The lease that a caller means, and its state.

use crate::clock::Timestamp;
use crate::context::Context;
use crate::error::{Error, Lost, Result, TaskName};
use crate::holder::{Caller, Judge, Liveness};
use crate::lease::{Lease, LeaseState, Resource};
use crate::store::View;

/// Whether `caller` is, by credential or by name, the process that holds `lease` (L6).
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

/// The state of a lease for its own holder, which may come late.
///
/// A clean-up between the expiry and the death of a holder must make no difference (L8), so the death counts even if the
/// lease was closed as expired before it.
pub(super) fn state_for_holder(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> LeaseState {
    match lease.state(now, judge) {
        LeaseState::Expired if lease.liveness(judge) == Some(Liveness::Dead) => LeaseState::HolderDead,
        state => state,
    }
}

/// The state of a section's lease. It ends with the last of its holder's tasks, so once those have lapsed it blocks nothing
/// either, however long it was granted for (L3). A holder between two tasks still has it.
pub(super) fn section_state(view: &dyn View, ctx: &Context<'_>, section: &Lease) -> Result<LeaseState> {
    let state = section.state(view.now(), ctx.judge);
    let (LeaseState::Live, Some(id)) = (state, section.resource.section_id()) else { return Ok(state) };
    let mut tasks = view.task_leases_in_section(&id, &section.holder)?;
    tasks.retain(|task| of_one_life(section, task));
    let mut standings = tasks.iter().map(|task| task.state(view.now(), ctx.judge));
    let Some(first) = standings.next() else { return Ok(state) };
    Ok(standings.fold(first, |so_far, next| match (so_far, next) {
        (LeaseState::Live, _) | (_, LeaseState::Live) => LeaseState::Live,
        (LeaseState::Expired, _) => so_far,
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

/// The lease that a caller means, and its state.
#[derive(Debug, Clone)]
pub struct Claim {
    pub lease: Lease,
    pub state: LeaseState,
}

/// Finds the lease that the caller means: the one of its fence, or the resource's latest if it is the same holder (L6).
///
/// Refused if that lease is not the latest grant of its resource.
pub fn claim_of(view: &dyn View, ctx: &Context<'_>, caller: &Caller, task: &TaskName) -> Result<Claim> {
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
            state: None,
            current,
            shown: caller.fence,
        })));
    };
    let state = state_for_holder(&lease, view.now(), ctx.judge);
    let claim = Claim { lease, state };
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
            state: Some(self.state),
            current,
            shown: caller.fence,
        }))
    }
}
