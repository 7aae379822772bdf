//! Attempts: one execution under a lease, recorded before its process exists.
//!
//! The end of a lease turns its running attempt into an `ending` one in the same transaction. Once the processes are gone,
//! [`end_attempt`] records that. While an attempt is `ending`, nothing new may start on its resource.

use std::time::Duration;

use serde_json::json;

use super::lease_state::same_holder;
use crate::context::Context;
use crate::error::Result;
use crate::event::{EventKind, NewEvent};
use crate::holder::{Caller, Incarnation};
use crate::id::{AttemptId, TaskId};
use crate::lease::{AgentRun, Attempt, AttemptState, EndReason, Leader, Lease, Resource};
use crate::outcome::Nonce;
use crate::store::{TaskEdit, Tx, View};
use crate::task::TaskStatus;

/// An attempt whose task is returned this soon after its start, by a process other than its supervisor, is a quick
/// return.
const QUICK: Duration = Duration::from_secs(30);
/// This many quick returns in a row are charged.
const QUICK_IN_A_ROW: usize = 3;

/// The outcome of an attempt, for its row.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub exit_code: Option<i32>,
    pub reason: String,
    pub charged: bool,
    pub run: Option<AgentRun>,
}

/// Inserts the attempt's row with its mark. The process may be started only after this is committed. `agent`: the name of
/// the agent that works. `nonce`: the value that an outcome kept outside the store has to contain.
pub fn begin_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    owner: &Incarnation,
    log_path: Option<String>,
    agent: Option<&str>,
    nonce: Option<&Nonce>,
) -> Result<Attempt> {
    let attempt = Attempt {
        id: ctx.ids.attempt(),
        resource: lease.resource.clone(),
        fence: lease.fence,
        state: AttemptState::Running,
        owner: owner.clone(),
        leader: None,
        log_path,
        agent: agent.map(str::to_owned),
        started_at: tx.now(),
        ended_at: None,
        exit_code: None,
        reason: None,
        charged: false,
        outcome_hash: nonce.map(Nonce::hash),
        quick_return: false,
        run: None,
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
pub fn end_attempt(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    attempt: &Attempt,
    outcome: &Outcome,
    actor: &str,
) -> Result<()> {
    let Some(found) = stored(tx, attempt)?.filter(|found| found.state != AttemptState::Ended) else {
        return Ok(());
    };
    let quick_return = is_quick_return(tx, ctx, &found)?;
    let ended = Attempt {
        state: AttemptState::Ended,
        ended_at: Some(tx.now()),
        exit_code: outcome.exit_code.or(found.exit_code),
        // The reason recorded when the lease ended is kept: the exit of the processes is only its consequence.
        reason: found.reason.clone().or_else(|| Some(outcome.reason.clone())),
        charged: found.charged || outcome.charged,
        quick_return,
        run: outcome.run.clone().or_else(|| found.run.clone()),
        ..found
    };
    tx.update_attempt(&ended.id, &ended)?;
    say(tx, &ended, EventKind::AttemptEnded, actor)?;
    if quick_return { charge_quick_returns(tx, ctx, &ended.resource, actor) } else { Ok(()) }
}

/// Whether the task was returned soon after the start, by a process other than the supervisor: a supervisor ends the
/// attempt before it ends the lease.
fn is_quick_return(tx: &dyn Tx, ctx: &Context<'_>, attempt: &Attempt) -> Result<bool> {
    let Some(id) = attempt.resource.task_id() else { return Ok(false) };
    if tx.now().since(attempt.started_at) > QUICK {
        return Ok(false);
    }
    let Some(lease) = tx.lease_by_fence(attempt.fence)? else { return Ok(false) };
    let ended = lease.ended.map(|(_, reason)| reason);
    if !matches!(ended, Some(EndReason::Released | EndReason::Forced | EndReason::Completed)) {
        return Ok(false);
    }
    // A later grant shows that the task had been returned before.
    let latest = tx.latest_lease(&attempt.resource)?;
    let granted_since = latest.is_some_and(|latest| latest.fence != attempt.fence);
    if granted_since {
        return Ok(true);
    }
    let task = tx.task_row(&id, &ctx.viewer(tx, None)?)?;
    Ok(task.is_some_and(|task| task.status == TaskStatus::Pending))
}

/// An agent may return its task in a way that does not show that it comes from within the attempt. Such a task would be
/// handed out for ever, so several quick returns in a row are charged.
fn charge_quick_returns(tx: &mut dyn Tx, ctx: &Context<'_>, resource: &Resource, actor: &str) -> Result<()> {
    let Some(id) = resource.task_id() else { return Ok(()) };
    let mut last = tx.attempts(resource)?;
    last.truncate(QUICK_IN_A_ROW);
    if last.len() < QUICK_IN_A_ROW || !last.iter().all(|a| a.quick_return && !a.charged) {
        return Ok(());
    }
    for attempt in last {
        tx.update_attempt(&attempt.id, &Attempt { charged: true, ..attempt.clone() })?;
    }
    let viewer = ctx.viewer(tx, None)?;
    let Some(task) = tx.task_row(&id, &viewer)? else { return Ok(()) };
    let attempts = task.attempts.saturating_add(u32::try_from(QUICK_IN_A_ROW).unwrap_or(u32::MAX));
    tx.edit_task(&id, &TaskEdit { attempts: Some(attempts), ..TaskEdit::default() }, None)?;
    if attempts < ctx.policy.max_attempts || task.status != TaskStatus::Pending {
        return Ok(());
    }
    let why =
        format!("{QUICK_IN_A_ROW} attempts in a row were given back within {} seconds", QUICK.as_secs());
    let event = NewEvent::new(EventKind::TaskStatus, actor)
        .task(&id)
        .status(task.status, TaskStatus::Failed)
        .detail(json!({"message": why}));
    tx.set_status(&id, TaskStatus::Failed, event)
}

/// Whether the caller acts from within an uncharged attempt under this lease: it has the attempt's mark, or it presents the
/// lease without being the supervisor.
pub(super) fn acts_within(view: &dyn View, caller: &Caller, lease: &Lease) -> Result<bool> {
    let presents = caller.process.is_none() && same_holder(lease, caller, false);
    if caller.attempt.is_none() && !presents {
        return Ok(false);
    }
    let is_it = |a: &Attempt| presents || caller.attempt.as_ref() == Some(&a.id);
    Ok(view.attempts(&lease.resource)?.iter().any(|a| a.fence == lease.fence && !a.charged && is_it(a)))
}

/// Whether the caller has the mark of an attempt under this lease.
pub(super) fn is_marked_by(view: &dyn View, caller: &Caller, lease: &Lease) -> Result<bool> {
    let Some(mark) = &caller.attempt else { return Ok(false) };
    Ok(view.attempts(&lease.resource)?.iter().any(|a| a.fence == lease.fence && a.id == *mark))
}

/// Charges the attempt whose mark the caller has, if that is an attempt at this resource. False if there is none, or if it
/// was charged before.
pub(super) fn charge_marked(tx: &mut dyn Tx, caller: &Caller, resource: &Resource) -> Result<bool> {
    let Some(mark) = &caller.attempt else { return Ok(false) };
    let attempts = tx.attempts(resource)?;
    match attempts.into_iter().find(|a| a.id == *mark && !a.charged) {
        Some(attempt) => {
            tx.update_attempt(mark, &Attempt { charged: true, ..attempt })?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Records the exit code that was kept with an outcome.
pub(super) fn note_exit_code(tx: &mut dyn Tx, attempt: &Attempt, exit_code: Option<i32>) -> Result<()> {
    match stored(tx, attempt)? {
        Some(found) => tx.update_attempt(&attempt.id, &Attempt { exit_code, ..found }),
        None => Ok(()),
    }
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
            charged: attempt.charged || charge,
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
