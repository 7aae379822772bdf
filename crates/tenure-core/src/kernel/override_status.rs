//! Changing the status of a task that the caller need not hold.

use serde_json::json;

use super::acquire::name_of;
use super::end::{close, drop_section, read, reason_of};
use super::lease_state::same_holder;
use super::wake;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::TaskId;
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::store::Tx;
use crate::task::{Task, TaskStatus};

/// Changes the status of a task that the caller need not hold: approve, reject, skip, retry, `update --status`.
///
/// Refused while another holder has a live lease, unless `force_it` is set: then that lease is ended and returned.
pub fn override_status(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &TaskId,
    to: TaskStatus,
    message: Option<&str>,
    force_it: bool,
) -> Result<Option<Lease>> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = read(tx, id, &viewer)?;
    if to == TaskStatus::InProgress {
        // Only a grant sets this status. A task in progress without a lease is not offered to any caller until a
        // reconcile returns it.
        let hint = Some(format!("tenure tasks claim {}", task.key));
        return Err(Error::InvalidTransition {
            task: name_of(&task),
            verb: "in progress without a claim",
            hint,
        });
    }
    let mut evicted = None;
    if let Some(lease) = &task.lease {
        let actor = &caller.holder.id;
        match lease.state(tx.now(), ctx.judge) {
            LeaseState::Live if same_holder(lease, caller, false) => {
                let reason = match to {
                    TaskStatus::Completed | TaskStatus::Review | TaskStatus::Failed => EndReason::Completed,
                    _ => EndReason::Released,
                };
                close(tx, lease, reason, message, actor, false)?;
                drop_section(tx, ctx, &viewer, &task, lease, reason)?;
            }
            LeaseState::Live if force_it => {
                close(tx, lease, EndReason::Forced, message, actor, false)?;
                drop_section(tx, ctx, &viewer, &task, lease, EndReason::Forced)?;
                wake::holder(tx, lease);
                evicted = Some(lease.clone());
            }
            LeaseState::Live => return Err(held_error(tx, ctx, &task, lease)?),
            state => {
                close(tx, lease, reason_of(state), message, actor, false)?;
                drop_section(tx, ctx, &viewer, &task, lease, reason_of(state))?;
            }
        }
    }
    let mut event = NewEvent::new(EventKind::TaskStatus, &caller.holder.id)
        .task(id)
        .status(task.status, to)
        .detail(json!({"message": message}));
    event.fence = task.lease.as_ref().map(|lease| lease.fence);
    if to != task.status {
        tx.set_status(id, to, event)?;
    }
    wake::wake_first(tx, &viewer, &Resource::task(id))?;
    wake::work_appeared(tx, &viewer)?;
    Ok(evicted)
}

/// The refusal of a change to a task that is held.
pub(crate) fn held_error(tx: &dyn Tx, ctx: &Context<'_>, task: &Task, lease: &Lease) -> Result<Error> {
    let viewer = ctx.viewer(tx, None)?;
    let resource = lease.resource.clone();
    let queue = super::queue::count_before(tx, &viewer, &resource, None)?;
    let locked =
        super::refusal::locked(tx, resource, &task.title, Some(name_of(task)), Some(lease.clone()), queue)?;
    Ok(Error::Locked(Box::new(locked)))
}
