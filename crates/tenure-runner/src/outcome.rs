//! Records how an attempt ended, under its fence, in one transaction.

use tenure_core::duration::format_short;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Finish, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::store::{Durability, Tx};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result};

use crate::database::DatabaseFile;
use crate::heartbeat::{LeaseLoss, is_finished};
use crate::supervise::{CommandEnd, Exit, Explanation, LimitCheck, Supervision};

/// How an attempt ended, as the supervisor saw it.
pub(crate) enum AttemptEnd {
    Exited(Exit),
    NotStarted { why: String, exit: u8 },
    Interrupted(i32),
    Overdue(LimitCheck),
    Lost(LeaseLoss),
}

/// What decided the outcome of the task.
enum Recorded {
    /// The command finished the task itself, under the fence.
    ByCommand(Box<Task>),
    ByExit(Box<Task>),
    /// The command was not started, for this reason.
    NotStarted(String, Box<Task>),
    Refused(Box<Error>),
}

/// `all_gone`: no process of the attempt is left. Otherwise it stays `ending`, and the next reaper continues.
pub(crate) fn conclude(
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    end: AttemptEnd,
    all_gone: bool,
) -> Result<CommandEnd> {
    let end = match (end, s.exec.database.and_then(DatabaseFile::loss)) {
        (AttemptEnd::Lost(loss), _) | (_, Some(loss)) => return Ok(lost(s, caller, attempt, loss, all_gone)),
        (end, None) => end,
    };
    // Called before the transaction, because it may wait for the rest of the output.
    let explain = |exit| s.limits.and_then(|limits| limits.explain(exit));
    let explanation = match &end {
        AttemptEnd::Exited(Exit::Code(code)) => explain(Some(*code)),
        AttemptEnd::Overdue(_) => explain(None),
        _ => None,
    };
    let recorded = s.store.write(Durability::Power, |tx| {
        record(tx, s, caller, attempt, &end, explanation.as_ref(), all_gone)
    })?;
    Ok(match (recorded, end) {
        (Recorded::Refused(error), _) => CommandEnd::Lost(LeaseLoss::Refused(error)),
        (Recorded::ByCommand(task) | Recorded::ByExit(task), AttemptEnd::Interrupted(signal)) => {
            CommandEnd::Interrupted { signal, task }
        }
        (Recorded::ByCommand(task) | Recorded::ByExit(task), end @ AttemptEnd::Overdue(_)) => {
            CommandEnd::Overdue { why: reason(&end), task }
        }
        (Recorded::NotStarted(why, task), AttemptEnd::Exited(Exit::Code(code))) => {
            CommandEnd::NotStarted { why, exit: u8::try_from(code).unwrap_or(126), task }
        }
        (Recorded::NotStarted(why, task), AttemptEnd::NotStarted { exit, .. }) => {
            CommandEnd::NotStarted { why, exit, task }
        }
        (Recorded::NotStarted(why, task), _) => CommandEnd::NotStarted { why, exit: 126, task },
        (Recorded::ByCommand(task), end) => CommandEnd::Exited { exit: exit_of(&end), reported: true, task },
        (Recorded::ByExit(task), end) => CommandEnd::Exited { exit: exit_of(&end), reported: false, task },
    })
}

/// The new holder may have ended the attempt already; otherwise this does. If it cannot be written, the next reaper
/// ends the attempt.
fn lost(
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    loss: LeaseLoss,
    all_gone: bool,
) -> CommandEnd {
    if all_gone && matches!(loss, LeaseLoss::Refused(_)) {
        let outcome = Outcome { reason: "the lease was lost".to_owned(), ..Outcome::default() };
        let _ = s
            .store
            .write(Durability::Process, |tx| kernel::end_attempt(tx, attempt, &outcome, &caller.holder.id));
    }
    CommandEnd::Lost(loss)
}

fn record(
    tx: &mut dyn Tx,
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    end: &AttemptEnd,
    explanation: Option<&Explanation>,
    all_gone: bool,
) -> Result<Recorded> {
    let not_started = match end {
        AttemptEnd::NotStarted { why, .. } => Some(why.clone()),
        _ => kernel::failed_start(tx, attempt)?,
    };
    let obstacle = match explanation {
        Some(Explanation::Obstacle(why)) if not_started.is_none() => Some(why.clone()),
        _ => None,
    };
    let reason = not_started.clone().or_else(|| obstacle.clone()).unwrap_or_else(|| reason(end));
    let review = s.lease.claimed_from == Some(TaskStatus::Review);
    let broken = not_started.is_some()
        || match end {
            _ if obstacle.is_some() => false,
            AttemptEnd::Exited(Exit::Signal(_)) | AttemptEnd::Overdue(LimitCheck::Hung(_)) => true,
            // A review that takes too long tells nothing about the work.
            AttemptEnd::Overdue(_) => review,
            _ => false,
        };
    if all_gone {
        let exit_code = match end {
            AttemptEnd::Exited(Exit::Code(code)) => Some(*code),
            _ => None,
        };
        let outcome = Outcome { exit_code, reason: reason.clone(), charged: broken };
        kernel::end_attempt(tx, attempt, &outcome, &caller.holder.id)?;
    }
    if is_finished(tx, s.lease.fence)? {
        let viewer = s.exec.ctx.viewer(tx, Some(&caller.holder))?;
        if let Some(id) = s.lease.resource.task_id()
            && let Some(task) = tx.task(&id, &viewer)?
        {
            record_end(tx, s, &task)?;
            return Ok(Recorded::ByCommand(Box::new(task)));
        }
    }
    let finished = if broken {
        kernel::abort_attempt(tx, &s.exec.ctx, caller, s.task, &reason)
    } else {
        let reason = match (end, explanation) {
            (AttemptEnd::Exited(Exit::Code(1..)), Some(Explanation::LastLine(line))) => {
                format!("{reason}: {line}")
            }
            _ => reason,
        };
        let finish = match end {
            _ if obstacle.is_some() => Finish::Release(Some(&reason)),
            AttemptEnd::Exited(Exit::Code(0)) => Finish::Done,
            AttemptEnd::Exited(_) if review => Finish::Reject(&reason),
            AttemptEnd::Exited(_) | AttemptEnd::Overdue(_) => Finish::Fail(&reason),
            _ => Finish::Release(Some(&reason)),
        };
        kernel::finish(tx, &s.exec.ctx, caller, s.task, finish, s.keep_section)
    };
    match finished {
        Ok(finished) => {
            record_end(tx, s, &finished.task)?;
            let task = Box::new(finished.task);
            Ok(not_started.map_or(Recorded::ByExit(task.clone()), |why| Recorded::NotStarted(why, task)))
        }
        // Detected before anything of the finish was written, so the end of the attempt is kept.
        Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
            Ok(Recorded::Refused(Box::new(error)))
        }
        Err(error) => Err(error),
    }
}

fn record_end(tx: &mut dyn Tx, s: &Supervision<'_>, task: &Task) -> Result<()> {
    s.recorder.map_or(Ok(()), |recorder| recorder.ended(tx, task))
}

fn reason(end: &AttemptEnd) -> String {
    match end {
        AttemptEnd::Exited(Exit::Code(code)) => format!("exited with {code}"),
        AttemptEnd::Exited(Exit::Signal(signal)) => format!("killed by {}", signal_name(*signal)),
        AttemptEnd::Interrupted(signal) => format!("interrupted by {}", signal_name(*signal)),
        AttemptEnd::NotStarted { why, .. } => why.clone(),
        AttemptEnd::Overdue(LimitCheck::Hung(silence)) => format!("no output for {}", format_short(*silence)),
        AttemptEnd::Overdue(LimitCheck::TooLong(limit) | LimitCheck::Within(limit)) => {
            format!("not finished after {}", format_short(*limit))
        }
        AttemptEnd::Lost(_) => "the lease was lost".to_owned(),
    }
}

fn exit_of(end: &AttemptEnd) -> Exit {
    match end {
        AttemptEnd::Exited(exit) => *exit,
        _ => Exit::Signal(0),
    }
}

fn signal_name(number: i32) -> String {
    signal_hook::low_level::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}
