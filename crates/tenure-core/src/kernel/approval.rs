//! The permission to approve a task (T2).

use super::attempt;
use crate::error::{Error, Result};
use crate::holder::{Caller, HolderKind};
use crate::lease::{Lease, Resource};
use crate::store::{LeaseFilter, View};
use crate::task::{Task, TaskStatus};

/// Refuses the approval of a task by the agent that has worked on it last (T2): one whose id held the last lease for work,
/// that presents this lease, or that acts within its attempt. A person may approve a task that the same person worked on.
pub(crate) fn check_approver(view: &dyn View, caller: &Caller, task: &Task) -> Result<()> {
    let Some(work) = last_work(view, task)?.filter(|lease| lease.holder.kind != HolderKind::Person) else {
        return Ok(());
    };
    let by_name = caller.holder.kind == HolderKind::Agent && work.held_by(&caller.holder);
    if by_name || caller.presents(&work) || attempt::is_marked_by(view, caller, &work)? {
        let message =
            format!("{} worked on {}, so another agent or a person must approve it", work.holder, task.key);
        return Err(Error::PermissionDenied { message, path: None });
    }
    Ok(())
}

/// The latest lease under which the task was worked on, as opposed to reviewed.
fn last_work(view: &dyn View, task: &Task) -> Result<Option<Lease>> {
    let filter = LeaseFilter {
        resource: Some(Resource::task(&task.id)),
        include_ended: true,
        newest_first: true,
        ..LeaseFilter::default()
    };
    Ok(view.leases(&filter)?.into_iter().find(|lease| lease.claimed_from != Some(TaskStatus::Review)))
}
