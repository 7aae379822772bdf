//! Writing down how an attempt ended, under its fence, in one transaction.

use tenure_core::duration::format_short;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Finish, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::store::{Durability, Tx};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result};

use crate::database::DatabaseFile;
use crate::heartbeat::{Loss, is_finished};
use crate::supervise::{Ended, Exit, Explanation, Look, Supervision};

/// What the supervisor has to say.
pub(crate) enum Word {
    Exited(Exit),
    NotStarted { why: String, exit: u8 },
    Interrupted(i32),
    Overdue(Look),
    Lost(Loss),
}

/// Whose word it was in the end.
enum Said {
    /// The command's own, under the fence.
    Itself(Box<Task>),
    ByItsEnd(Box<Task>),
    /// The command never was; why.
    NotStarted(String, Box<Task>),
    Nobody(Box<Error>),
}

/// `all_gone`: no process of the attempt is left. Else it stays `ending`, and whoever comes next goes on with that.
pub(crate) fn conclude(
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    word: Word,
    all_gone: bool,
) -> Result<Ended> {
    let word = match (word, s.database.and_then(DatabaseFile::loss)) {
        (Word::Lost(loss), _) | (_, Some(loss)) => return Ok(lost(s, caller, attempt, loss, all_gone)),
        (word, None) => word,
    };
    // Asked before the transaction, because it may have to wait for the rest of the output.
    let explain = |exit| s.limits.and_then(|limits| limits.explain(exit));
    let explanation = match &word {
        Word::Exited(Exit::Code(code)) => explain(Some(*code)),
        Word::Overdue(_) => explain(None),
        _ => None,
    };
    let said = s
        .store
        .write(Durability::Power, |tx| say(tx, s, caller, attempt, &word, explanation.as_ref(), all_gone))?;
    Ok(match (said, word) {
        (Said::Nobody(error), _) => Ended::Lost(Loss::Refused(error)),
        (Said::Itself(task) | Said::ByItsEnd(task), Word::Interrupted(signal)) => {
            Ended::Interrupted { signal, task }
        }
        (Said::Itself(task) | Said::ByItsEnd(task), word @ Word::Overdue(_)) => {
            Ended::Overdue { why: reason(&word), task }
        }
        (Said::NotStarted(why, task), Word::Exited(Exit::Code(code))) => {
            Ended::NotStarted { why, exit: u8::try_from(code).unwrap_or(126), task }
        }
        (Said::NotStarted(why, task), Word::NotStarted { exit, .. }) => Ended::NotStarted { why, exit, task },
        (Said::NotStarted(why, task), _) => Ended::NotStarted { why, exit: 126, task },
        (Said::Itself(task), word) => Ended::Exited { exit: exit_of(&word), spoken: true, task },
        (Said::ByItsEnd(task), word) => Ended::Exited { exit: exit_of(&word), spoken: false, task },
    })
}

/// Whoever has it now may have ended the attempt already; if nobody has, this is it. Where it cannot be written, the
/// next to come finishes it.
fn lost(s: &Supervision<'_>, caller: &Caller, attempt: &Attempt, loss: Loss, all_gone: bool) -> Ended {
    if all_gone && matches!(loss, Loss::Refused(_)) {
        let outcome = Outcome { reason: "the lease was lost".to_owned(), ..Outcome::default() };
        let _ = s
            .store
            .write(Durability::Process, |tx| kernel::end_attempt(tx, attempt, &outcome, &caller.holder.id));
    }
    Ended::Lost(loss)
}

fn say(
    tx: &mut dyn Tx,
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    word: &Word,
    explanation: Option<&Explanation>,
    all_gone: bool,
) -> Result<Said> {
    let not_started = match word {
        Word::NotStarted { why, .. } => Some(why.clone()),
        _ => kernel::failed_start(tx, attempt)?,
    };
    let obstacle = match explanation {
        Some(Explanation::Obstacle(why)) if not_started.is_none() => Some(why.clone()),
        _ => None,
    };
    let reason = not_started.clone().or_else(|| obstacle.clone()).unwrap_or_else(|| reason(word));
    let review = s.lease.claimed_from == Some(TaskStatus::Review);
    let broken = not_started.is_some()
        || match word {
            _ if obstacle.is_some() => false,
            Word::Exited(Exit::Signal(_)) | Word::Overdue(Look::Hung(_)) => true,
            // A review that takes too long says nothing about the work.
            Word::Overdue(_) => review,
            _ => false,
        };
    if all_gone {
        let exit_code = match word {
            Word::Exited(Exit::Code(code)) => Some(*code),
            _ => None,
        };
        let outcome = Outcome { exit_code, reason: reason.clone(), charged: broken };
        kernel::end_attempt(tx, attempt, &outcome, &caller.holder.id)?;
    }
    if is_finished(tx, s.lease.fence)? {
        let viewer = s.ctx.viewer(tx, Some(&caller.holder))?;
        if let Some(id) = s.lease.resource.task_id()
            && let Some(task) = tx.task(&id, &viewer)?
        {
            note_end(tx, s, &task)?;
            return Ok(Said::Itself(Box::new(task)));
        }
    }
    let finished = if broken {
        kernel::abort_attempt(tx, &s.ctx, caller, s.task, &reason)
    } else {
        let reason = match (word, explanation) {
            (Word::Exited(Exit::Code(1..)), Some(Explanation::LastLine(line))) => format!("{reason}: {line}"),
            _ => reason,
        };
        let finish = match word {
            _ if obstacle.is_some() => Finish::Release(Some(&reason)),
            Word::Exited(Exit::Code(0)) => Finish::Done,
            Word::Exited(_) if review => Finish::Reject(&reason),
            Word::Exited(_) | Word::Overdue(_) => Finish::Fail(&reason),
            _ => Finish::Release(Some(&reason)),
        };
        kernel::finish(tx, &s.ctx, caller, s.task, finish, s.keep_section)
    };
    match finished {
        Ok(finished) => {
            note_end(tx, s, &finished.task)?;
            let task = Box::new(finished.task);
            Ok(not_started.map_or(Said::ByItsEnd(task.clone()), |why| Said::NotStarted(why, task)))
        }
        // Found out before anything of it was written, so the end of the attempt stands.
        Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
            Ok(Said::Nobody(Box::new(error)))
        }
        Err(error) => Err(error),
    }
}

fn note_end(tx: &mut dyn Tx, s: &Supervision<'_>, task: &Task) -> Result<()> {
    s.steps.map_or(Ok(()), |steps| steps.ended(tx, task))
}

fn reason(word: &Word) -> String {
    match word {
        Word::Exited(Exit::Code(code)) => format!("exited with {code}"),
        Word::Exited(Exit::Signal(signal)) => format!("killed by {}", signal_name(*signal)),
        Word::Interrupted(signal) => format!("interrupted by {}", signal_name(*signal)),
        Word::NotStarted { why, .. } => why.clone(),
        Word::Overdue(Look::Hung(silence)) => format!("no output for {}", format_short(*silence)),
        Word::Overdue(Look::TooLong(limit) | Look::GoOn(limit)) => {
            format!("not finished after {}", format_short(*limit))
        }
        Word::Lost(_) => "the lease was lost".to_owned(),
    }
}

fn exit_of(word: &Word) -> Exit {
    match word {
        Word::Exited(exit) => *exit,
        _ => Exit::Signal(0),
    }
}

fn signal_name(number: i32) -> String {
    signal_hook::low_level::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}
