//! Records how an attempt ended, under its fence, in one transaction. Retries while the store does not answer (F6).

use tenure_core::duration::format_short;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Outcome};
use tenure_core::lease::Attempt;
use tenure_core::outcome::{AttemptResult, KeptOutcome, Nonce};
use tenure_core::parking::Cost;
use tenure_core::store::{Durability, Tx};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Result};

use crate::agents::ProcessEnd;
use crate::database::DatabaseFile;
use crate::heartbeat::{LeaseLoss, is_finished};
use crate::outage::{OutcomeWrite, write_outcome};
use crate::supervise::{CommandEnd, Exit, LimitCheck, OutputVerdict, Supervision};
use crate::wait::until_any;

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
    Lost(LeaseLoss),
}

/// `all_gone`: no process of the attempt is left. Otherwise it stays `ending`, and the next reaper continues.
pub(crate) fn conclude(
    s: &Supervision<'_>,
    caller: &Caller,
    (attempt, nonce): (&Attempt, &Nonce),
    end: AttemptEnd,
    all_gone: bool,
) -> CommandEnd {
    let end = match end {
        AttemptEnd::Lost(loss) => return lost(s, caller, attempt, loss, all_gone),
        end => end,
    };
    // Called before the transaction, because it may wait for the rest of the output.
    let verdict = process_end(&end).and_then(|how| s.limits?.verdict(how, &reason(&end)));
    let kept = KeptOutcome {
        attempt: attempt.id.clone(),
        fence: attempt.fence,
        nonce: nonce.clone(),
        exit_code: exit_code(&end),
        result: judge(s, &end, verdict.as_ref(), None),
    };
    let mut signal = match &end {
        AttemptEnd::Interrupted(signal) => Some(*signal),
        _ => None,
    };
    let stop = |nap| {
        if signal.is_none() {
            until_any(&[s.signals.fd()], nap);
            signal = s.signals.take();
        }
        signal.is_some()
    };
    let write = || {
        let recorded = s
            .store
            .write(Durability::Power, |tx| record(tx, s, caller, attempt, &end, verdict.as_ref(), all_gone));
        match s.exec.database.and_then(DatabaseFile::loss) {
            // A result that was written to a file that is no longer the project's does not count.
            Some(loss) => Ok(Recorded::Lost(loss)),
            None => recorded,
        }
    };
    match write_outcome(s.exec.ctx.outcomes, &kept, s.outage, stop, write) {
        OutcomeWrite::Answered(recorded) => ended(recorded, end),
        OutcomeWrite::Kept(error) => {
            let exit = match end {
                AttemptEnd::Exited(exit) => Some(exit),
                AttemptEnd::NotStarted { exit, .. } => Some(Exit::Code(exit.into())),
                _ => None,
            };
            CommandEnd::Kept { exit, signal, why: Box::new(error) }
        }
    }
}

fn ended(recorded: Recorded, end: AttemptEnd) -> CommandEnd {
    match (recorded, end) {
        (Recorded::Lost(loss), _) => CommandEnd::Lost(loss),
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
    }
}

/// Ends the attempt, unless the new holder has done so already. If that cannot be written, the next reaper ends it.
fn lost(
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    loss: LeaseLoss,
    all_gone: bool,
) -> CommandEnd {
    if all_gone && matches!(loss, LeaseLoss::Refused(_)) {
        let outcome = Outcome { reason: "the lease was lost".to_owned(), ..Outcome::default() };
        let actor = &caller.holder.id;
        let _ = s
            .store
            .write(Durability::Process, |tx| kernel::end_attempt(tx, &s.exec.ctx, attempt, &outcome, actor));
    }
    CommandEnd::Lost(loss)
}

fn record(
    tx: &mut dyn Tx,
    s: &Supervision<'_>,
    caller: &Caller,
    attempt: &Attempt,
    end: &AttemptEnd,
    verdict: Option<&OutputVerdict>,
    all_gone: bool,
) -> Result<Recorded> {
    let not_started = match end {
        AttemptEnd::NotStarted { why, .. } => Some(why.clone()),
        _ => kernel::failed_start(tx, attempt)?,
    };
    let mut result = judge(s, end, verdict, not_started.as_deref());
    if let Some(recorder) = s.recorder {
        result = recorder.judge(tx, result, not_started.as_deref())?;
    }
    let reported = reported_task(tx, s, caller)?;
    let cost = match &result {
        _ if reported.is_some() => Cost::Nothing,
        AttemptResult::Broken { .. } | AttemptResult::Failed { charged: true, .. } => Cost::Attempt,
        AttemptResult::Failed { .. } if s.lease.claimed_from == Some(TaskStatus::Review) => Cost::Rejection,
        _ => Cost::Nothing,
    };
    if all_gone {
        let reason = match (&not_started, verdict) {
            (Some(why), _) => why.clone(),
            (None, Some(verdict)) => verdict.reason.clone(),
            (None, None) => reason(end),
        };
        let run = s.recorder.and_then(|recorder| recorder.run(reported.as_ref().map(|task| task.status)));
        let charged = cost == Cost::Attempt;
        let outcome = Outcome { exit_code: exit_code(end), reason, charged, run };
        kernel::end_attempt(tx, &s.exec.ctx, attempt, &outcome, &caller.holder.id)?;
    }
    if let Some(task) = reported {
        record_end(tx, s, &task, Cost::Nothing, true)?;
        return Ok(Recorded::ByCommand(Box::new(task)));
    }
    match kernel::conclude_attempt(tx, &s.exec.ctx, caller, s.task, &result, s.keep_section) {
        Ok(finished) => {
            record_end(tx, s, &finished.task, cost, false)?;
            let task = Box::new(finished.task);
            Ok(not_started.map_or(Recorded::ByExit(task.clone()), |why| Recorded::NotStarted(why, task)))
        }
        // Detected before the finish has written anything, so the end of the attempt stays in the
        // transaction.
        Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
            kernel::record_rejection(tx, &error)?;
            Ok(Recorded::Lost(LeaseLoss::Refused(Box::new(error))))
        }
        Err(error) => Err(error),
    }
}

/// The task, if the command has finished it itself.
fn reported_task(tx: &dyn Tx, s: &Supervision<'_>, caller: &Caller) -> Result<Option<Task>> {
    let Some(id) = s.lease.resource.task_id() else { return Ok(None) };
    if !is_finished(tx, s.lease)? {
        return Ok(None);
    }
    let viewer = s.exec.ctx.viewer(tx, Some(&caller.holder))?;
    tx.task(&id, &viewer)
}

/// The result of the attempt. `not_started` is the reason why the command was not started, if it is known.
fn judge(
    s: &Supervision<'_>,
    end: &AttemptEnd,
    verdict: Option<&OutputVerdict>,
    not_started: Option<&str>,
) -> AttemptResult {
    if let Some(why) = not_started {
        return AttemptResult::Broken { why: why.to_owned() };
    }
    if let Some(verdict) = verdict {
        return verdict.result.clone();
    }
    let why = reason(end);
    let review = s.lease.claimed_from == Some(TaskStatus::Review);
    match end {
        AttemptEnd::NotStarted { .. }
        | AttemptEnd::Exited(Exit::Signal(_))
        | AttemptEnd::Overdue(LimitCheck::Hung(_)) => AttemptResult::Broken { why },
        // A review that takes too long says nothing about the quality of the work.
        AttemptEnd::Overdue(_) if review => AttemptResult::Broken { why },
        AttemptEnd::Exited(Exit::Code(0)) => AttemptResult::Done,
        AttemptEnd::Interrupted(_) | AttemptEnd::Lost(_) => AttemptResult::Returned { why },
        AttemptEnd::Exited(_) | AttemptEnd::Overdue(_) => AttemptResult::Failed { why, charged: false },
    }
}

/// How the command ended by itself or was ended. `None` if it was not started or its lease was lost.
fn process_end(end: &AttemptEnd) -> Option<ProcessEnd> {
    match end {
        AttemptEnd::Exited(Exit::Code(code)) => Some(ProcessEnd::Exited(*code)),
        AttemptEnd::Exited(Exit::Signal(_)) => Some(ProcessEnd::Killed),
        AttemptEnd::Overdue(LimitCheck::Hung(_)) => Some(ProcessEnd::Hung),
        AttemptEnd::Overdue(_) => Some(ProcessEnd::TimedOut),
        AttemptEnd::Interrupted(_) => Some(ProcessEnd::Stopped),
        AttemptEnd::NotStarted { .. } | AttemptEnd::Lost(_) => None,
    }
}

fn record_end(tx: &mut dyn Tx, s: &Supervision<'_>, task: &Task, cost: Cost, reported: bool) -> Result<()> {
    s.recorder.map_or(Ok(()), |recorder| recorder.ended(tx, task, cost, reported))
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

fn exit_code(end: &AttemptEnd) -> Option<i32> {
    match end {
        AttemptEnd::Exited(Exit::Code(code)) => Some(*code),
        _ => None,
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
