//! Changing the status of a task that the caller need not hold.

use serde_json::json;

use super::acquire::name_of;
use super::end::{close, drop_section, read, reason_of};
use super::finish::charge_return;
use super::lease_state::acts_under;
use super::{attempt, wake};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::holder::Caller;
use crate::id::TaskId;
use crate::lease::{EndReason, Lease, LeaseState, Resource};
use crate::store::Tx;
use crate::task::{Task, TaskStatus};

/// The other effects of a change of status.
#[derive(Debug, Clone, Default)]
pub struct Overridden {
    /// The lease of another holder that was ended by force.
    pub evicted: Option<Lease>,
    /// The task was returned from within an attempt at it, which was charged.
    pub charged: bool,
}

/// Changes the status of a task that the caller need not hold: approve, reject, skip, retry, `update --status`.
///
/// Refused while another holder has a live lease, unless `force_it` is set: then that lease is ended and returned. A lease
/// that has expired is ended for good, so that its holder's late report does not undo the decision. A return to pending
/// from within an attempt is charged, and fails the task after `max_attempts`.
pub fn override_status(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &TaskId,
    to: TaskStatus,
    message: Option<&str>,
    force_it: bool,
) -> Result<Overridden> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = read(tx, id, &viewer)?;
    if to == TaskStatus::InProgress {
        // Only a grant sets this status. A task in progress without a lease is not offered to any caller until a
        // reconcile returns it.
        let hint = Some(Box::new(hints::claim(&task.key)));
        return Err(Error::InvalidTransition {
            task: name_of(&task),
            verb: "in progress without a claim",
            hint,
        });
    }
    let returns = to == TaskStatus::Pending && task.status != TaskStatus::Pending;
    let mut done = Overridden::default();
    if let Some(lease) = &task.lease {
        let within = returns && attempt::acts_within(tx, caller, lease)?;
        let actor = &caller.holder.id;
        match lease.state(tx.now(), ctx.judge) {
            LeaseState::Live if acts_under(lease, caller) => {
                let reason = match to {
                    TaskStatus::Completed | TaskStatus::Review | TaskStatus::Failed => EndReason::Completed,
                    _ => EndReason::Released,
                };
                done.charged = close(tx, lease, reason, message, actor, within)?;
                drop_section(tx, ctx, &task, lease, reason)?;
            }
            LeaseState::Live if force_it => {
                done.charged = close(tx, lease, EndReason::Forced, message, actor, within)?;
                drop_section(tx, ctx, &task, lease, EndReason::Forced)?;
                wake::holder(tx, lease);
                done.evicted = Some(lease.clone());
            }
            LeaseState::Live => return Err(held_error(tx, ctx, &task, lease)?),
            LeaseState::Expired => {
                close(tx, lease, EndReason::Forced, message, actor, false)?;
                // Other tasks of the holder in the section may still be revived.
                drop_section(tx, ctx, &task, lease, EndReason::Expired)?;
                wake::holder(tx, lease);
            }
            state => {
                close(tx, lease, reason_of(state), message, actor, false)?;
                drop_section(tx, ctx, &task, lease, reason_of(state))?;
            }
        }
    } else {
        end_expired(tx, id, message, &caller.holder.id)?;
    }
    // The lease may be over already: the agent has failed or finished the task before.
    done.charged = done.charged || returns && attempt::charge_marked(tx, caller, &Resource::task(id))?;
    let failed = if done.charged { charge_return(tx, ctx, &task, message)? } else { None };
    let (to, message) = match &failed {
        Some(why) => (TaskStatus::Failed, Some(why.as_str())),
        None => (to, message),
    };
    let mut event = NewEvent::new(EventKind::TaskStatus, &caller.holder.id)
        .task(id)
        .status(task.status, to)
        .detail(json!({"message": message}));
    event.fence = task.lease.as_ref().map(|lease| lease.fence);
    if to != task.status {
        tx.set_status(id, to, event)?;
    }
    wake::work_appeared(tx, ctx)?;
    Ok(done)
}

/// Ends the task's last lease for good if a clean-up has closed it as expired. Its holder could still report or revive it,
/// and a decision that was made since must stand (L8).
fn end_expired(tx: &mut dyn Tx, id: &TaskId, message: Option<&str>, actor: &str) -> Result<()> {
    let latest = tx.latest_lease(&Resource::task(id))?;
    match latest.filter(|lease| lease.ended.is_some_and(|(_, reason)| reason == EndReason::Expired)) {
        Some(lease) => {
            tx.reopen_lease(lease.fence)?;
            close(tx, &lease, EndReason::Forced, message, actor, false).map(drop)
        }
        None => Ok(()),
    }
}

/// The refusal of a change to a task that is held.
pub(crate) fn held_error(tx: &dyn Tx, ctx: &Context<'_>, task: &Task, lease: &Lease) -> Result<Error> {
    let viewer = ctx.viewer(tx, None)?;
    let resource = lease.resource.clone();
    let queue = super::queue::waiters_before(tx, &viewer, &resource, None)?;
    let locked =
        super::refusal::locked(tx, resource, &task.title, Some(name_of(task)), Some(lease.clone()), &queue)?;
    Ok(Error::Locked(Box::new(locked)))
}
