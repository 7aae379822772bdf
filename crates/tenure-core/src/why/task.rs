//! Why one task makes no progress.

use super::{Asking, Reason, words};
use crate::clock::Timestamp;
use crate::duration::{TTL_MIN, format_rounded};
use crate::error::{Error, Result, TaskName};
use crate::hints;
use crate::id::TaskId;
use crate::kernel::{self, Terms};
use crate::lease::{Lease, LeaseState, Resource};
use crate::store::View;
use crate::task::{Task, TaskStatus};
use crate::{reference, shell_quote};

/// The task, and the reasons in the order of their weight.
pub fn about_task(view: &dyn View, asking: &Asking<'_>, reference: &str) -> Result<(TaskName, Vec<Reason>)> {
    let viewer = asking.viewer(view)?;
    let name = reference::task(view, reference)?;
    let id = TaskId::new(&name.id);
    let task = view.task(&id, &viewer)?.ok_or_else(|| Error::TaskNotFound { reference: name.key.clone() })?;
    let reasons = match over(view, &task)? {
        Some(reason) => vec![reason],
        None => in_the_way(view, asking, &task, &name)?,
    };
    let reasons = asking.complete(view, reasons)?;
    Ok((name, reasons))
}

/// The reason for a task that can no longer be claimed.
fn over(view: &dyn View, task: &Task) -> Result<Option<Reason>> {
    let key = &task.key;
    let retry = || hints::retry(key);
    let (kind, sentence, hint) = match task.status {
        TaskStatus::Completed => ("finished", "It is completed.", None),
        TaskStatus::Skipped => ("finished", "It was skipped.", Some(retry())),
        TaskStatus::Failed => ("failed", "It has failed and cannot be claimed.", Some(retry())),
        TaskStatus::Review => ("review", "It is waiting for review.", Some(hints::approve(key))),
        TaskStatus::Pending | TaskStatus::InProgress => return Ok(None),
    };
    let mut sentence = sentence.to_owned();
    if matches!(task.status, TaskStatus::Failed | TaskStatus::Review) {
        let last = view.attempts(&Resource::task(&task.id))?.into_iter().find(|a| a.run.is_some());
        if let Some(why) = last.and_then(|attempt| attempt.reason) {
            sentence = format!("{sentence} The last attempt: {why}.");
        }
    }
    Ok(Some(Reason { hint, ..Reason::new(kind, sentence) }))
}

/// What keeps an open task from being claimed, or that it is ready.
fn in_the_way(view: &dyn View, asking: &Asking<'_>, task: &Task, name: &TaskName) -> Result<Vec<Reason>> {
    let key = &task.key;
    let mut reasons = Vec::new();
    if let Some(lease) = &task.lease {
        let viewer = asking.viewer(view)?;
        let waiting = kernel::count_before(view, &viewer, &Resource::task(&task.id), None)?;
        reasons.push(held(asking, lease, "It", view.now(), waiting, key));
    }
    for blocker in &task.blocked_by {
        reasons.push(match blocker.strip_prefix("section:") {
            Some(section) => {
                Reason::new("section_dependency", format!("Its section is blocked by section {section}."))
                    .hint(hints::show_blocking_section(shell_quote::last_arg(section)))
            }
            None => Reason::new("dependency", format!("It is blocked by {blocker}."))
                .hint(hints::why_task(blocker)),
        });
    }
    reasons.extend(section_in_the_way(view, asking, task)?);
    if reasons.is_empty() {
        let caller = (asking.claimant)(name);
        // Nothing is granted, so the ttl does not matter.
        let locked = kernel::in_the_way(view, asking.ctx, &caller, task, &Terms::new(TTL_MIN))?;
        reasons.push(match locked.and_then(|locked| locked.first) {
            Some(first) => Reason {
                first: Some(*first.clone()),
                ..Reason::new("reserved", format!("It is ready, but reserved for a waiter: {first}."))
            },
            None => Reason::new("ready", "It is ready to be claimed.").hint(hints::claim(key)),
        });
    }
    Ok(reasons)
}

fn section_in_the_way(view: &dyn View, asking: &Asking<'_>, task: &Task) -> Result<Option<Reason>> {
    let Some(section) = task.section.as_ref().filter(|s| s.serial) else { return Ok(None) };
    let Some(lease) = view.open_lease(&Resource::section(&section.id))? else { return Ok(None) };
    let mine = asking.me.is_some_and(|me| lease.held_by(me))
        || task.lease.as_ref().is_some_and(|l| l.holder == lease.holder);
    if mine || lease.state(view.now(), asking.ctx.judge) != LeaseState::Live {
        return Ok(None);
    }
    let rest = format_rounded(lease.expires_at.since(view.now()));
    let sentence = format!(
        "Its section {} is serial, and {} works in it, for at most another {rest}.",
        section.name,
        words::holder(&lease)
    );
    Ok(Some(Reason::new("section_held", sentence).hint(hints::wait_for_task(&task.key))))
}

/// The reason that the task `key` has this open lease. `what` names the task in the sentence.
pub(super) fn held(
    asking: &Asking<'_>,
    lease: &Lease,
    what: &str,
    now: Timestamp,
    waiting: usize,
    key: &str,
) -> Reason {
    let who = words::holder(lease);
    if lease.state(now, asking.ctx.judge) == LeaseState::Live {
        let sentence = format!(
            "{what} has been held by {who} since {}, for at most another {}{}.",
            (asking.time)(lease.acquired_at),
            format_rounded(lease.expires_at.since(now)),
            if waiting > 0 { format!("; {waiting} waiting") } else { String::new() }
        );
        return Reason::new("held", sentence).hint(hints::wait_for_task(key));
    }
    let rest = words::remaining(lease, now, asking.ctx.judge);
    let sentence = format!("{what} was held by {who}; the lease has lapsed ({rest}).");
    Reason::new("lapsed", sentence).hint(hints::take_over(key))
}
