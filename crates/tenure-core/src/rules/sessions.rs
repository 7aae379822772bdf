//! Sessions: opened or resumed with a runner's slot, checkpointed at every step, and closed at the end of the run.

use serde_json::json;

use crate::context::Context;
use crate::error::{Locked, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::Fence;
use crate::kernel::{self, Terms};
use crate::lease::{Attempt, EndReason, Lease};
use crate::session::{Current, DoneTask, Session, SessionOptions, SessionState, session_resource};
use crate::store::Tx;
use crate::task::{Task, TaskStatus};

/// Creates or resumes a session for the caller's run.
pub fn open_session(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    id: &str,
    options: &SessionOptions,
    terms: &Terms,
) -> Result<Result<(Session, Lease), Box<Locked>>> {
    let resource = session_resource(id);
    let lease = match kernel::acquire_resource(tx, ctx, caller, &resource, id, terms)? {
        Ok(lease) => lease,
        Err(locked) => return Ok(Err(locked)),
    };
    let now = tx.now();
    let known = tx.session(id)?;
    let resumed = known.is_some();
    let session = Session {
        id: id.to_owned(),
        state: SessionState::Open,
        runner: caller.holder.id.clone(),
        options: options.clone(),
        current: known.as_ref().and_then(|session| session.current.clone()),
        fence: lease.fence,
        error: None,
        started_at: known.map_or(now, |session| session.started_at),
        updated_at: now,
    };
    tx.save_session(&session)?;
    let detail = json!({"session": id, "runner": session.runner, "resumed": resumed});
    tx.append(NewEvent::new(EventKind::SessionStarted, &caller.holder.id).fence(lease.fence).detail(detail))?;
    Ok(Ok((session, lease)))
}

/// The event that a checkpoint records.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    Taken {
        task: &'a Task,
        fence: Fence,
    },
    Begun(&'a Attempt),
    /// The agent has reported the id of its conversation.
    Named(&'a str),
    /// The runner has released the task, which now has this status.
    Released {
        task: &'a Task,
        fence: Fence,
    },
}

/// Writes a checkpoint. Returns false and writes nothing if the caller no longer holds the session (L8).
pub fn checkpoint(tx: &mut dyn Tx, ctx: &Context<'_>, lease: &Lease, step: Step<'_>) -> Result<bool> {
    if kernel::must_hold(tx, ctx, lease).is_err() {
        return Ok(false);
    }
    let Some(mut session) = tx.session(&lease.resource.id)? else { return Ok(false) };
    match step {
        Step::Taken { task, fence } => {
            // An interrupted conversation of the same task is continued.
            let before = session.current.take().filter(|current| current.task == task.id);
            session.current = Some(Current {
                task: task.id.clone(),
                key: task.key.clone(),
                fence,
                attempt: None,
                agent_session: before.and_then(|current| current.agent_session),
            });
        }
        Step::Begun(attempt) => {
            if let Some(current) = session.current.as_mut().filter(|c| c.fence == attempt.fence) {
                current.attempt = Some(attempt.id.clone());
            }
        }
        Step::Named(name) => {
            if let Some(current) = &mut session.current {
                current.agent_session = Some(name.to_owned());
            }
        }
        // A returned task was interrupted and stays current, so that a resumed session continues it.
        Step::Released { task, .. }
            if matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress) => {}
        Step::Released { task, fence } => {
            session.current = None;
            let done = DoneTask {
                task: task.id.clone(),
                key: task.key.clone(),
                status: task.status,
                fence,
                at: tx.now(),
            };
            tx.insert_done_task(&session.id, &done)?;
        }
    }
    session.fence = lease.fence;
    session.updated_at = tx.now();
    tx.save_session(&session)?;
    Ok(true)
}

/// Ends the run. An interrupted session stays open, so that it can be resumed.
pub fn close_session(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    lease: &Lease,
    state: SessionState,
    error: Option<&str>,
) -> Result<()> {
    if kernel::must_hold(tx, ctx, lease).is_ok()
        && let Some(session) = tx.session(&lease.resource.id)?
    {
        let current = session.current.clone().filter(|_| state != SessionState::Completed);
        let (fence, updated_at) = (lease.fence, tx.now());
        tx.save_session(&Session {
            state,
            current,
            fence,
            updated_at,
            error: error.map(str::to_owned),
            ..session
        })?;
        let detail = json!({"session": lease.resource.id, "state": state.as_str(), "message": error});
        tx.append(NewEvent::new(EventKind::SessionEnded, &lease.holder.id).fence(fence).detail(detail))?;
    }
    kernel::release_resource(tx, ctx, lease, EndReason::Released)
}
