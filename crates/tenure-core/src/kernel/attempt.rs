//! Attempts: one execution under a lease, recorded before its process exists.
//!
//! The lease's end turns a running attempt into an `ending` one in the same transaction; whoever then ends its processes
//! says so with [`end_attempt`]. While one is `ending`, nothing new may start on that resource.

use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::event::{EventKind, NewEvent};
use crate::holder::Incarnation;
use crate::id::{AttemptId, TaskId};
use crate::lease::{Attempt, AttemptState, Lease};
use crate::store::{Tx, View};

/// How an attempt went, for its row.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub exit_code: Option<i32>,
    pub reason: String,
    pub charged: bool,
}

/// Commits the attempt's row and its mark; only then may its process be started.
pub fn begin_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    owner: &Incarnation,
    log_path: Option<String>,
) -> Result<Attempt> {
    let attempt = Attempt {
        id: ctx.ids.attempt(),
        resource: lease.resource.clone(),
        fence: lease.fence,
        state: AttemptState::Running,
        owner: owner.clone(),
        pid: None,
        log_path,
        started_at: tx.now(),
        ended_at: None,
        exit_code: None,
        reason: None,
        charged: false,
    };
    tx.insert_attempt(&attempt)?;
    say(tx, &attempt, EventKind::AttemptStarted, &lease.holder.id)?;
    Ok(attempt)
}

/// The row may have been marked since it was begun, so nothing else of it is written.
pub fn note_pid(tx: &mut dyn Tx, attempt: &mut Attempt, pid: u32) -> Result<()> {
    if let Some(found) = stored(tx, attempt)? {
        *attempt = Attempt { pid: Some(pid), ..found };
        tx.update_attempt(&attempt.id, attempt)?;
    }
    Ok(())
}

/// Its command could not be started at all, and why.
pub fn note_failed_start(tx: &mut dyn Tx, attempt: &Attempt, why: &str) -> Result<()> {
    match stored(tx, attempt)?.filter(|found| found.state == AttemptState::Running) {
        Some(found) => {
            tx.update_attempt(&found.id, &Attempt { reason: Some(why.to_owned()), ..found.clone() })
        }
        None => Ok(()),
    }
}

/// Why its command could not be started, if that is what happened. While it runs, nothing else has a reason.
pub fn failed_start(view: &dyn View, attempt: &Attempt) -> Result<Option<String>> {
    let found = stored(view, attempt)?.filter(|found| found.state == AttemptState::Running);
    Ok(found.and_then(|found| found.reason))
}

fn stored(view: &dyn View, attempt: &Attempt) -> Result<Option<Attempt>> {
    Ok(view.attempts(&attempt.resource)?.into_iter().find(|found| found.id == attempt.id))
}

/// Its processes are gone. Saying it twice changes nothing.
pub fn end_attempt(tx: &mut dyn Tx, attempt: &Attempt, outcome: &Outcome, actor: &str) -> Result<()> {
    let Some(found) = stored(tx, attempt)?.filter(|found| found.state != AttemptState::Ended) else {
        return Ok(());
    };
    let ended = Attempt {
        state: AttemptState::Ended,
        ended_at: Some(tx.now()),
        exit_code: outcome.exit_code.or(found.exit_code),
        // What the takeover wrote down is the reason; the killing is only its consequence.
        reason: found.reason.clone().or_else(|| Some(outcome.reason.clone())),
        charged: found.charged || outcome.charged,
        ..found
    };
    tx.update_attempt(&ended.id, &ended)?;
    say(tx, &ended, EventKind::AttemptEnded, actor)
}

/// The lease is over: whatever still runs under it is to be ended.
pub(super) fn mark_ending(
    tx: &mut dyn Tx,
    lease: &Lease,
    reason: &str,
    charge: bool,
    actor: &str,
) -> Result<bool> {
    let mut charged = false;
    for attempt in tx.attempts(&lease.resource)? {
        if attempt.fence != lease.fence || attempt.state != AttemptState::Running {
            continue;
        }
        let ending = Attempt {
            state: AttemptState::Ending,
            reason: Some(reason.to_owned()),
            charged: charge,
            ..attempt
        };
        tx.update_attempt(&ending.id, &ending)?;
        say(tx, &ending, EventKind::AttemptEnding, actor)?;
        charged |= charge;
    }
    Ok(charged)
}

/// Its lease is over and nobody has marked it: whoever did so died in between, or wrote by other means.
pub(super) fn mark_orphan(tx: &mut dyn Tx, attempt: &Attempt, actor: &str) -> Result<()> {
    if attempt.state != AttemptState::Running {
        return Ok(());
    }
    let reason = attempt.reason.clone().or_else(|| Some("its lease is over".to_owned()));
    let ending = Attempt { state: AttemptState::Ending, reason, ..attempt.clone() };
    tx.update_attempt(&ending.id, &ending)?;
    say(tx, &ending, EventKind::AttemptEnding, actor)
}

/// The lease is taken up again: what time alone had doomed goes on, or the next clean-up would end it.
pub(super) fn mark_running(tx: &mut dyn Tx, lease: &Lease) -> Result<()> {
    for attempt in tx.attempts(&lease.resource)? {
        if attempt.fence == lease.fence && attempt.state == AttemptState::Ending {
            let running = Attempt { state: AttemptState::Running, reason: None, charged: false, ..attempt };
            tx.update_attempt(&running.id, &running)?;
        }
    }
    Ok(())
}

/// Every attempt that waits for its processes to be ended.
pub fn unfinished_attempts(view: &dyn View) -> Result<Vec<Attempt>> {
    let mut attempts = view.open_attempts()?;
    attempts.retain(|a| a.state == AttemptState::Ending);
    Ok(attempts)
}

pub(super) fn is_running(view: &dyn View, lease: &Lease) -> Result<bool> {
    Ok(view
        .attempts(&lease.resource)?
        .iter()
        .any(|a| a.fence == lease.fence && a.state == AttemptState::Running))
}

fn say(tx: &mut dyn Tx, attempt: &Attempt, kind: EventKind, actor: &str) -> Result<()> {
    let task: Option<TaskId> = attempt.resource.task_id();
    let id: &AttemptId = &attempt.id;
    let mut event = NewEvent::new(kind, actor).fence(attempt.fence).detail(json!({
        "attempt": id, "resource": attempt.resource.to_string(), "exitCode": attempt.exit_code,
        "reason": attempt.reason, "charged": attempt.charged,
    }));
    event.task = task.as_ref();
    tx.append(event)
}
