//! Finding the lease that a caller refers to, and its state.

use crate::clock::Timestamp;
use crate::context::Context;
use crate::error::{Error, Lost, Result, TaskName};
use crate::holder::{Caller, Judge, Liveness};
use crate::lease::{Lease, LeaseState, Resource};
use crate::store::View;

/// Whether `caller` is the holder of `lease`, according to what it presents or to its name (L6).
///
/// Several processes may share a name. A caller with another process does not match a lease that records one, and a
/// caller without a process matches such a lease only while no attempt is `running` under it.
pub fn same_holder(lease: &Lease, caller: &Caller, running: bool) -> bool {
    if caller.presents(lease) {
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

/// Whether `caller` may change the task of `lease` as its holder. A caller that presents another lease may not, even
/// under the same name: its lease is over (L8).
pub fn acts_under(lease: &Lease, caller: &Caller) -> bool {
    if caller.presents_a_lease() { caller.presents(lease) } else { same_holder(lease, caller, false) }
}

/// The state of a lease for its own holder, which may report after the lease has expired.
///
/// The result must not depend on whether a clean-up ran between the expiry and the holder's death (L8), so a dead
/// holder counts as dead even if its lease was closed as expired.
pub(super) fn state_for_holder(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> LeaseState {
    match lease.state(now, judge) {
        LeaseState::Expired if lease.liveness(judge) == Some(Liveness::Dead) => LeaseState::HolderDead,
        state => state,
    }
}

/// The state of a section's lease. If its holder has open leases on tasks in the section and all of them have lapsed,
/// the section's lease has lapsed too, whatever its expiry (L3). Without such leases the holder is between two tasks
/// and keeps the section.
pub(super) fn section_state(view: &dyn View, ctx: &Context<'_>, section: &Lease) -> Result<LeaseState> {
    let state = section.state(view.now(), ctx.judge);
    let (LeaseState::Live, Some(id)) = (state, section.resource.section_id()) else { return Ok(state) };
    let mut tasks = view.task_leases_in_section(&id, &section.holder)?;
    tasks.retain(|task| is_of_same_process(section, task));
    let mut states = tasks.iter().map(|task| task.state(view.now(), ctx.judge));
    let Some(first) = states.next() else { return Ok(state) };
    Ok(states.fold(first, |so_far, next| match (so_far, next) {
        (LeaseState::Live, _) | (_, LeaseState::Live) => LeaseState::Live,
        (LeaseState::Expired, _) => so_far,
        _ => next,
    }))
}

/// Whether the leases of a section and of a task belong to the same process. A lease without a recorded process matches
/// any.
pub(super) fn is_of_same_process(section: &Lease, task: &Lease) -> bool {
    match (&section.process, &task.process) {
        (Some(theirs), Some(ours)) => theirs.process == ours.process,
        _ => true,
    }
}

/// The lease that a caller refers to, and its state.
#[derive(Debug, Clone)]
pub struct Claim {
    pub lease: Lease,
    pub state: LeaseState,
}

/// Finds the lease that the caller refers to: the one that it presents, or the resource's latest if it is the same
/// holder (L6).
///
/// Refused if that lease is not the latest grant of its resource.
pub fn claim_of(view: &dyn View, ctx: &Context<'_>, caller: &Caller, task: &TaskName) -> Result<Claim> {
    let resource = Resource::new(crate::lease::ResourceKind::Task, &task.id);
    let latest = view.latest_lease(&resource)?;
    let current = latest.clone().filter(Lease::is_open);
    let meant = match latest.clone().filter(|lease| acts_under(lease, caller)) {
        Some(latest) => Some(latest),
        None => presented(view, caller)?.filter(|lease| lease.resource == resource),
    };
    let Some(lease) = meant else {
        return Err(Error::NotHolder(Box::new(lost(task.clone(), None, current, caller))));
    };
    let state = state_for_holder(&lease, view.now(), ctx.judge);
    let claim = Claim { lease, state };
    if latest.is_some_and(|latest| !latest.is_same(&claim.lease)) {
        return Err(claim.lost(task.clone(), current, caller));
    }
    Ok(claim)
}

/// The lease, open or ended, that the caller presents.
fn presented(view: &dyn View, caller: &Caller) -> Result<Option<Lease>> {
    let found = match (&caller.lease, caller.fence) {
        (Some(id), _) => view.lease_by_id(id.as_str())?,
        (None, Some(fence)) => view.lease_by_fence(fence)?,
        (None, None) => None,
    };
    Ok(found.filter(|lease| caller.presents(lease)))
}

fn lost(task: TaskName, meant: Option<&Claim>, current: Option<Lease>, caller: &Caller) -> Lost {
    Lost {
        task,
        meant: meant.map(|claim| claim.lease.clone()),
        state: meant.map(|claim| claim.state),
        is_own: current.as_ref().is_some_and(|lease| lease.held_by(&caller.holder)),
        current,
        shown: caller.fence,
    }
}

impl Claim {
    pub(super) fn lost(&self, task: TaskName, current: Option<Lease>, caller: &Caller) -> Error {
        let current = current.filter(|lease| !lease.is_same(&self.lease));
        Error::LeaseLost(Box::new(lost(task, Some(self), current, caller)))
    }
}
