//! A holder's report on its task: the status it leads to, whether it was made before, and what it ends.

use super::acquire::name_of;
use super::end::{close, drop_section, missing, move_task, read, return_task, still_where_left};
use super::lease_state::claim_of;
use super::{attempt, item, wake};
use crate::context::Context;
use crate::error::{Result, TaskName};
use crate::event::EventKind;
use crate::holder::{Caller, HolderKind};
use crate::id::TaskId;
use crate::lease::{EndReason, Lease, LeaseState};
use crate::outcome::AttemptResult;
use crate::store::{EventFilter, MessageFilter, TaskEdit, Tx, Viewer};
use crate::task::{Task, TaskStatus};

/// What a holder reports about its task.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a> {
    Done,
    /// Done, with a remark.
    DoneWith(&'a str),
    /// Sends the task to review, whatever the policy.
    Review,
    /// The holder ends without saying what became of the task, which goes to review.
    Unreported(&'a str),
    Fail(&'a str),
    /// The review rejects the task, with the reason. Without a review this is a failure.
    Reject(&'a str),
    Release(Option<&'a str>),
}

impl Finish<'_> {
    pub(super) fn end_reason(self) -> EndReason {
        match self {
            Self::Release(_) | Self::Unreported(_) => EndReason::Released,
            _ => EndReason::Completed,
        }
    }

    pub(super) fn rejects(self, lease: &Lease) -> bool {
        matches!(self, Self::Reject(_)) && lease.claimed_from == Some(TaskStatus::Review)
    }

    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Fail(text) | Self::Reject(text) | Self::DoneWith(text) | Self::Unreported(text) => {
                Some(text)
            }
            Self::Release(text) => *text,
            Self::Done | Self::Review => None,
        }
    }

    pub(super) fn target(self, ctx: &Context<'_>, lease: &Lease, task: &Task) -> TaskStatus {
        match self {
            // Finishing a task that was claimed for review means approving it.
            Self::Done | Self::DoneWith(_)
                if ctx.policy.review && lease.claimed_from != Some(TaskStatus::Review) =>
            {
                TaskStatus::Review
            }
            Self::Done | Self::DoneWith(_) => TaskStatus::Completed,
            Self::Review | Self::Unreported(_) => TaskStatus::Review,
            Self::Reject(_)
                if self.rejects(lease) && task.rejections.saturating_add(1) < ctx.policy.max_rejections =>
            {
                TaskStatus::Pending
            }
            Self::Fail(_) | Self::Reject(_) => TaskStatus::Failed,
            Self::Release(_) => lease.claimed_from.unwrap_or(TaskStatus::Pending),
        }
    }

    /// Whether a task with this status shows that the same report was made before, for example because the reply was
    /// lost.
    pub(super) fn already(self, lease: &Lease, status: TaskStatus) -> bool {
        match self {
            Self::Done | Self::DoneWith(_) => matches!(status, TaskStatus::Completed | TaskStatus::Review),
            Self::Review | Self::Unreported(_) => status == TaskStatus::Review,
            Self::Fail(_) => status == TaskStatus::Failed,
            Self::Reject(_) => matches!(status, TaskStatus::Pending | TaskStatus::Failed),
            Self::Release(_) => Some(status) == lease.claimed_from,
        }
    }
}

/// How many events of a task are searched for a repeated finish: far more than a task has after its last grant.
const RECENT: u64 = 100;

#[derive(Debug, Clone)]
pub struct Finished {
    pub task: Task,
    pub lease: Lease,
    /// False if the same finish was reported before, with the same credential.
    pub changed: bool,
}

/// The holder's report on its task, accepted only under the latest grant (L8) and applied once.
///
/// With `keep_section`, a runner keeps the section's lease for the section's next task.
pub fn finish(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    finish: Finish<'_>,
    keep_section: bool,
) -> Result<Finished> {
    let id = TaskId::new(&task.id);
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let found = read(tx, &id, &viewer)?;
    let claim = claim_of(tx, ctx, caller, task)?;
    let lease = &claim.lease;
    let expected = finish.end_reason();
    match claim.state {
        LeaseState::Live => {}
        // Late, but since then the task was not granted again and its status was not changed.
        LeaseState::Expired if still_where_left(lease, found.status) => {}
        LeaseState::Ended(reason) if reason == expected && was_reported(tx, finish, lease, found.status)? => {
            return Ok(Finished { task: found, lease: claim.lease, changed: false });
        }
        _ => return Err(claim.lost(name_of(&found), None, caller)),
    }
    if lease.ended.is_some() {
        // The lease was closed as expired. It is reopened, so that it ends with the reason that the holder reports.
        tx.reopen_lease(lease.fence)?;
    }
    // A runner presents its process. A report without one comes from the runner's agent.
    let by_the_agent = lease.holder.kind == HolderKind::Runner && caller.process.is_none();
    let report = Report {
        actor: &caller.holder.id,
        given_back: matches!(finish, Finish::Release(_))
            && (by_the_agent || attempt::acts_within(tx, caller, lease)?),
        // An agent's report does not end the section's lease, which its runner holds.
        keep_section: keep_section || by_the_agent,
    };
    settle(tx, ctx, &found, lease, finish, &report)?;
    let task = tx.task(&id, &viewer)?.ok_or_else(|| missing(&id))?;
    Ok(Finished { task, lease: claim.lease, changed: true })
}

/// How a task is finished, and by which caller.
struct Report<'a> {
    actor: &'a str,
    /// Released from within the attempt, which is charged.
    given_back: bool,
    keep_section: bool,
}

/// Ends the lease and moves its task to where the finish leads.
fn settle(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    found: &Task,
    lease: &Lease,
    finish: Finish<'_>,
    report: &Report<'_>,
) -> Result<()> {
    let id = &found.id;
    let expected = finish.end_reason();
    let mut reason = finish.message().map(str::to_owned);
    close(tx, lease, expected, reason.as_deref(), report.actor, report.given_back)?;
    let mut to = finish.target(ctx, lease, found);
    if report.given_back {
        // Without a charge, the runner would offer the task again at once, and a task that every agent releases would
        // never fail.
        if let Some(why) = charge_return(tx, ctx, found, reason.as_deref())? {
            (to, reason) = (TaskStatus::Failed, Some(why));
        }
    }
    let rejected = finish.rejects(lease);
    if rejected {
        let rejections = Some(found.rejections.saturating_add(1));
        tx.edit_task(id, &TaskEdit { rejections, ..TaskEdit::default() }, None)?;
    }
    move_task(tx, found, to, report.actor, lease, reason.as_deref(), rejected)?;
    acknowledge_messages(tx, lease, id, to, report.actor)?;
    if !report.keep_section {
        drop_section(tx, ctx, found, lease, expected)?;
    }
    wake::work_appeared(tx, ctx)
}

/// Counts an attempt that gave its task back. If that reaches the limit of attempts, returns why the task has failed.
pub(super) fn charge_return(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    task: &Task,
    reason: Option<&str>,
) -> Result<Option<String>> {
    let attempts = count_attempt(tx, task)?;
    if attempts < ctx.policy.max_attempts {
        return Ok(None);
    }
    let last = reason.unwrap_or("no reason was given");
    Ok(Some(format!("{attempts} attempts failed; the last agent released the task: {last}")))
}

/// The report on an attempt at a task by its supervisor, accepted only under the latest grant (L8).
pub fn conclude_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    result: &AttemptResult,
    keep_section: bool,
) -> Result<Finished> {
    match finish_of(result) {
        Ok(word) => {
            let mut finished = finish(tx, ctx, caller, task, word, keep_section)?;
            if finished.changed && matches!(result, AttemptResult::Failed { charged: true, .. }) {
                finished.task.attempts = count_attempt(tx, &finished.task)?;
            }
            Ok(finished)
        }
        Err(why) => abort_attempt(tx, ctx, caller, task, why),
    }
}

/// Counts a charged attempt. Returns the new number.
fn count_attempt(tx: &mut dyn Tx, task: &Task) -> Result<u32> {
    let attempts = task.attempts.saturating_add(1);
    tx.edit_task(&task.id, &TaskEdit { attempts: Some(attempts), ..TaskEdit::default() }, None)?;
    Ok(attempts)
}

/// Ends an open lease with the result of its attempt, in the name of its holder.
pub(super) fn settle_result(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    result: &AttemptResult,
) -> Result<()> {
    let Some(id) = lease.resource.task_id() else { return item::settle_result(tx, lease, result) };
    let viewer = ctx.viewer(tx, None)?;
    let actor = &lease.holder.id;
    match finish_of(result) {
        Ok(word) => {
            let found = read(tx, &id, &viewer)?;
            let report = Report { actor, given_back: false, keep_section: false };
            settle(tx, ctx, &found, lease, word, &report)?;
            if matches!(result, AttemptResult::Failed { charged: true, .. }) {
                count_attempt(tx, &found)?;
            }
            Ok(())
        }
        Err(why) => abort(tx, ctx, &viewer, lease, why, actor),
    }
}

/// The report that a result leads to; the reason if the attempt broke off.
fn finish_of(result: &AttemptResult) -> Result<Finish<'_>, &str> {
    match result {
        AttemptResult::Done => Ok(Finish::Done),
        // A failure, if the task was not claimed for review.
        AttemptResult::Failed { why, .. } => Ok(Finish::Reject(why)),
        AttemptResult::Unreported { why } => Ok(Finish::Unreported(why)),
        AttemptResult::Returned { why } => Ok(Finish::Release(Some(why))),
        AttemptResult::Broken { why } => Err(why),
    }
}

/// Ends an execution that has no result: the command could not be started, or a foreign signal killed it. The task is
/// returned and charged, and fails after `max_attempts`.
fn abort_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    task: &TaskName,
    why: &str,
) -> Result<Finished> {
    let id = TaskId::new(&task.id);
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let found = read(tx, &id, &viewer)?;
    let claim = claim_of(tx, ctx, caller, task)?;
    let lease = &claim.lease;
    match claim.state {
        LeaseState::Live => {}
        LeaseState::Expired if still_where_left(lease, found.status) => {}
        _ => return Err(claim.lost(name_of(&found), None, caller)),
    }
    if lease.ended.is_some() {
        tx.reopen_lease(lease.fence)?;
    }
    abort(tx, ctx, &viewer, lease, why, &caller.holder.id)?;
    let task = tx.task(&id, &viewer)?.ok_or_else(|| missing(&id))?;
    Ok(Finished { task, lease: claim.lease, changed: true })
}

fn abort(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    viewer: &Viewer,
    lease: &Lease,
    why: &str,
    actor: &str,
) -> Result<()> {
    close(tx, lease, EndReason::Released, Some(why), actor, true)?;
    return_task(tx, ctx, viewer, lease, (EndReason::Released, why), actor, true)
}

/// Whether the holder has made this report before. If the status was changed since, the task's events still show the
/// report.
fn was_reported(tx: &dyn Tx, finish: Finish<'_>, lease: &Lease, status: TaskStatus) -> Result<bool> {
    if finish.already(lease, status) {
        return Ok(true);
    }
    let filter =
        EventFilter { task: lease.resource.task_id(), last: true, limit: RECENT, ..Default::default() };
    let events = tx.events(&filter)?;
    let report = events.iter().rfind(|e| e.kind == EventKind::TaskStatus && e.fence == Some(lease.fence));
    Ok(report.and_then(|event| event.to).is_some_and(|to| finish.already(lease, to)))
}

/// If the task goes to completed or review, acknowledges the messages that the holder was shown: to `by`, or without a
/// recipient. Later ones are left for the next holder.
fn acknowledge_messages(tx: &mut dyn Tx, lease: &Lease, id: &TaskId, to: TaskStatus, by: &str) -> Result<()> {
    if lease.messages_through == 0 || !matches!(to, TaskStatus::Completed | TaskStatus::Review) {
        return Ok(());
    }
    let filter =
        MessageFilter { task: Some(id.clone()), limit: u64::from(u32::MAX), ..MessageFilter::default() };
    for message in tx.messages(&filter)?.0 {
        let was_shown = message.id <= lease.messages_through;
        if was_shown && message.to.as_deref().is_none_or(|to| to == by) {
            tx.acknowledge(message.id, by)?;
        }
    }
    Ok(())
}
