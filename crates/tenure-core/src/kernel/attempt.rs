//! Attempts: one execution under a lease, recorded before its process exists.
//!
//! The end of a lease turns its running attempt into an `ending` one in the same transaction. Once the processes are gone,
//! [`end_attempt`] records that. While an attempt is `ending`, nothing new may start on its resource.

use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::event::{EventKind, NewEvent};
use crate::holder::Incarnation;
use crate::id::{AttemptId, TaskId};
use crate::lease::{Attempt, AttemptState, Leader, Lease};
use crate::store::{Tx, View};

/// The outcome of an attempt, for its row.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub exit_code: Option<i32>,
    pub reason: String,
    pub charged: bool,
}

/// Inserts the attempt's row with its mark. The process may be started only after this is committed.
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
        leader: None,
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

/// Records the process that is about to become the attempt's command, and returns the attempt. None if the attempt is not
/// running; then the command must not start.
pub fn note_leader(tx: &mut dyn Tx, mark: &str, leader: &Leader) -> Result<Option<Attempt>> {
    let open = tx.open_attempts()?;
    let running = |a: &Attempt| a.id.as_str() == mark && a.state == AttemptState::Running;
    let Some(found) = open.into_iter().find(running) else { return Ok(None) };
    let started = Attempt { leader: Some(leader.clone()), ..found };
    tx.update_attempt(&started.id, &started)?;
    Ok(Some(started))
}

/// The recorded first process of an attempt.
pub fn leader_of(view: &dyn View, attempt: &Attempt) -> Result<Option<Leader>> {
    Ok(stored(view, attempt)?.and_then(|found| found.leader))
}

/// Records why the command could not be started.
pub fn note_failed_start(tx: &mut dyn Tx, attempt: &Attempt, why: &str) -> Result<()> {
    match stored(tx, attempt)?.filter(|found| found.state == AttemptState::Running) {
        Some(found) => {
            tx.update_attempt(&found.id, &Attempt { reason: Some(why.to_owned()), ..found.clone() })
        }
        None => Ok(()),
    }
}

/// Why the command could not be started, or `None` if it was started. While an attempt is running, `reason` has no
/// other use.
pub fn failed_start(view: &dyn View, attempt: &Attempt) -> Result<Option<String>> {
    let found = stored(view, attempt)?.filter(|found| found.state == AttemptState::Running);
    Ok(found.and_then(|found| found.reason))
}

fn stored(view: &dyn View, attempt: &Attempt) -> Result<Option<Attempt>> {
    Ok(view.attempts(&attempt.resource)?.into_iter().find(|found| found.id == attempt.id))
}

/// Records that the processes of an attempt are gone. Idempotent.
pub fn end_attempt(tx: &mut dyn Tx, attempt: &Attempt, outcome: &Outcome, actor: &str) -> Result<()> {
    let Some(found) = stored(tx, attempt)?.filter(|found| found.state != AttemptState::Ended) else {
        return Ok(());
    };
    let ended = Attempt {
        state: AttemptState::Ended,
        ended_at: Some(tx.now()),
        exit_code: outcome.exit_code.or(found.exit_code),
        // The reason recorded when the lease ended is kept: the exit of the processes is only its consequence.
        reason: found.reason.clone().or_else(|| Some(outcome.reason.clone())),
        charged: found.charged || outcome.charged,
        ..found
    };
    tx.update_attempt(&ended.id, &ended)?;
    say(tx, &ended, EventKind::AttemptEnded, actor)
}

/// Marks the running attempt of an ended lease as `ending`. True if the attempt was charged.
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

/// Marks a running attempt whose lease is over as ending. Every end of a lease does this, so only another program can
/// have left one.
pub(super) fn mark_orphan(tx: &mut dyn Tx, attempt: &Attempt, actor: &str) -> Result<()> {
    if attempt.state != AttemptState::Running {
        return Ok(());
    }
    let reason = attempt.reason.clone().or_else(|| Some("its lease is over".to_owned()));
    let ending = Attempt { state: AttemptState::Ending, reason, ..attempt.clone() };
    tx.update_attempt(&ending.id, &ending)?;
    say(tx, &ending, EventKind::AttemptEnding, actor)
}

/// Marks the attempt of a revived lease as running again. As `ending`, its processes would be killed by the next
/// clean-up.
pub(super) fn mark_running(tx: &mut dyn Tx, lease: &Lease) -> Result<()> {
    for attempt in tx.attempts(&lease.resource)? {
        if attempt.fence == lease.fence && attempt.state == AttemptState::Ending {
            let running = Attempt { state: AttemptState::Running, reason: None, charged: false, ..attempt };
            tx.update_attempt(&running.id, &running)?;
        }
    }
    Ok(())
}

/// Every attempt whose processes have yet to be ended.
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
