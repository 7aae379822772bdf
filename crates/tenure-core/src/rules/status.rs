//! Status changes without a lease: approve, reject, skip, retry, reopen, and `update --status`.
//!
//! While a task is held for review, only its holder can approve or reject it, which then counts as its finish.

use super::add::named;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hints::{self, Hint};
use crate::holder::Caller;
use crate::kernel;
use crate::lease::{Lease, LeaseState};
use crate::store::{TaskEdit, Tx};
use crate::task::{Task, TaskStatus};
use crate::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Approve,
    Reject,
    Skip,
    Retry,
    /// Also for completed tasks.
    Reopen,
    /// `update --status`, to anything but `in_progress`: that is a claim.
    To(TaskStatus),
}

#[derive(Debug, Clone)]
pub struct Changed {
    pub task: Task,
    pub from: TaskStatus,
    /// The lease that `force` has ended.
    pub evicted: Option<Lease>,
}

pub fn change_status(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
    change: Change,
    message: Option<&str>,
    force: bool,
) -> Result<Changed> {
    message.map_or(Ok(()), text::check_message)?;
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = named(tx, reference, &viewer)?;
    let from = task.status;
    if let Some(finish) = verdict(&task, caller, change, message) {
        let finished = kernel::finish(tx, ctx, caller, &kernel::name_of(&task), finish, false)?;
        return Ok(Changed { task: finished.task, from, evicted: None });
    }
    let Some(mut to) = target(change, from) else {
        if let Some(lease) = task.lease.as_ref().filter(|_| !force)
            && lease.state(tx.now(), ctx.judge) == LeaseState::Live
            && !kernel::acts_under(lease, caller)
        {
            return Err(kernel::held_error(tx, ctx, &task, lease)?);
        }
        return Err(Error::InvalidTransition {
            task: kernel::name_of(&task),
            verb: verb(change),
            hint: Some(Box::new(hint(change, &task))),
        });
    };
    if approves(change, from, ctx.policy.review) {
        kernel::check_approver(tx, caller, &task)?;
    }
    let mut edit = TaskEdit::default();
    if change == Change::Reject {
        let rejections = task.rejections.saturating_add(1);
        edit.rejections = Some(rejections);
        if rejections >= ctx.policy.max_rejections {
            to = TaskStatus::Failed;
        }
    }
    let kernel::Overridden { evicted, charged } =
        kernel::override_status(tx, ctx, caller, &task.id, to, message, force)?;
    // If an agent retries its own task, the count of its attempts is not reset.
    if matches!(change, Change::Retry | Change::Reopen) && !charged {
        edit.attempts = Some(0);
        edit.rejections = Some(0);
    }
    if edit.rejections.is_some() || edit.attempts.is_some() {
        tx.edit_task(&task.id, &edit, None)?;
    }
    let task = tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })?;
    Ok(Changed { task, from, evicted })
}

/// Whether the change approves the task: explicitly, or by completing a task that must be reviewed.
fn approves(change: Change, from: TaskStatus, review: bool) -> bool {
    match change {
        Change::Approve => true,
        Change::To(TaskStatus::Completed) => review || from == TaskStatus::Review,
        _ => false,
    }
}

/// While a task is held for review, only the holder of that lease approves or rejects it.
fn verdict<'a>(
    task: &Task,
    caller: &Caller,
    change: Change,
    message: Option<&'a str>,
) -> Option<kernel::Finish<'a>> {
    let lease = task.lease.as_ref().filter(|_| task.status == TaskStatus::InProgress)?;
    if lease.claimed_from != Some(TaskStatus::Review) || !kernel::acts_under(lease, caller) {
        return None;
    }
    match change {
        Change::Approve => Some(kernel::Finish::Done),
        Change::Reject => Some(kernel::Finish::Reject(message.unwrap_or_default())),
        _ => None,
    }
}

/// The status that the change leads to, or `None` if it is not possible from `from`.
fn target(change: Change, from: TaskStatus) -> Option<TaskStatus> {
    use TaskStatus::{Completed, Failed, InProgress, Pending, Review, Skipped};
    let open = matches!(from, Pending | InProgress | Review | Failed);
    let fits = match change {
        Change::Approve | Change::Reject => matches!(from, Review | Completed),
        Change::Skip => open || from == Skipped,
        Change::Retry => matches!(from, Failed | Skipped),
        Change::Reopen => from.is_finished() || from == Failed,
        Change::To(to) if to == from => true,
        Change::To(InProgress) => false,
        Change::To(Pending | Completed) => true,
        Change::To(Review | Failed | Skipped) => open,
    };
    let to = match change {
        Change::Approve => Completed,
        Change::Reject | Change::Retry | Change::Reopen => Pending,
        Change::Skip => Skipped,
        Change::To(to) => to,
    };
    fits.then_some(to)
}

fn verb(change: Change) -> &'static str {
    match change {
        Change::Approve => "approved",
        Change::Reject => "rejected",
        Change::Skip => "skipped",
        Change::Retry => "retried",
        Change::Reopen => "reopened",
        Change::To(TaskStatus::Pending) => "set to pending",
        Change::To(TaskStatus::InProgress) => "set to in_progress",
        Change::To(TaskStatus::Review) => "set to review",
        Change::To(TaskStatus::Completed) => "set to completed",
        Change::To(TaskStatus::Failed) => "set to failed",
        Change::To(TaskStatus::Skipped) => "set to skipped",
    }
}

fn hint(change: Change, task: &Task) -> Hint {
    let key = task.key.clone();
    match (change, task.status) {
        (Change::To(_), TaskStatus::Skipped) => hints::retry(key),
        (Change::Retry | Change::Skip | Change::To(_), TaskStatus::Completed) => hints::reopen(key),
        _ => hints::show_task(key),
    }
}
