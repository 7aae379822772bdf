//! What an attempt's ending means for its account, its host and its preset.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::clock::Timestamp;
use crate::context::Context;
use crate::ending::Ending;
use crate::error::Result;
use crate::event::{EventKind, NewEvent};
use crate::holder::{Caller, Judge};
use crate::id::{Fence, TaskId};
use crate::kernel;
use crate::lease::{Attempt, LeaseState, Resource};
use crate::parking::{Cost, CountedAttempt, Parking, ParkingScope, Subject};
use crate::store::{TaskEdit, Tx, View};
use crate::task::TaskStatus;

/// This many endings of the same family in a row park a preset.
const IN_A_ROW: u32 = 3;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// When a parked subject is tried again, if no reset is known.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// From the first pause, doubling up to the longest.
    Doubling(Duration, Duration),
    /// When the configuration of the preset changes.
    UntilChanged,
    /// When a person starts a runner.
    UntilStarted,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedAttempt<'a> {
    pub ending: Ending,
    /// A sentence for people.
    pub reason: &'a str,
    pub resets_at: Option<Timestamp>,
    pub task: &'a TaskId,
    pub fence: Fence,
    pub cost: Cost,
}

/// Whether a runner may work with a preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// One task may be tried.
    Probe(Vec<Parking>),
    Closed(Box<Parking>),
}

/// Records what the ending of an attempt means for its account, host and preset. To be called in the transaction that ends
/// the attempt. Returns what that has parked.
pub fn note_ending(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    scope: &ParkingScope,
    caller: &Caller,
    ended: &EndedAttempt<'_>,
) -> Result<Option<Parking>> {
    let [account, host, preset] = scope.subjects();
    let (subject, pause) = match ended.ending {
        Ending::Limited => (account, Pause::Doubling(MINUTE, HOUR)),
        Ending::Overloaded => (account, Pause::Doubling(MINUTE, MINUTE * 15)),
        Ending::NoNetwork => (host, Pause::Doubling(SECOND * 30, MINUTE * 15)),
        Ending::NoCredit | Ending::NotLoggedIn => (account, Pause::Doubling(HOUR, HOUR)),
        Ending::Misconfigured => (preset, Pause::UntilChanged),
        Ending::Crashed | Ending::Unclassified | Ending::Unreported | Ending::PermissionDenied => {
            let pause = if is_without_result(ended.ending) {
                Pause::Doubling(MINUTE, HOUR)
            } else {
                // The model has answered, so the account and the host work.
                clear(tx, &account, &caller.holder.id)?;
                clear(tx, &host, &caller.holder.id)?;
                Pause::UntilStarted
            };
            if !count(tx, ctx, &preset, caller, ended)? {
                return Ok(None);
            }
            (preset, pause)
        }
        Ending::Done | Ending::GaveUp | Ending::TaskError => {
            for subject in scope.subjects() {
                clear(tx, &subject, &caller.holder.id)?;
            }
            return Ok(None);
        }
        Ending::Hung | Ending::TimedOut | Ending::Stopped | Ending::LeaseLost => return Ok(None),
    };
    let EndedAttempt { ending, reason, resets_at, .. } = *ended;
    park(tx, scope, subject, pause, &caller.holder.id, (ending, reason, resets_at)).map(Some)
}

/// Parks a preset that cannot be started as it is configured, until that changes.
pub fn park_misconfigured(
    tx: &mut dyn Tx,
    scope: &ParkingScope,
    reason: &str,
    actor: &str,
) -> Result<Parking> {
    let [_, _, preset] = scope.subjects();
    park(tx, scope, preset, Pause::UntilChanged, actor, (Ending::Misconfigured, reason, None))
}

/// Whether the preset and not the task is to blame for an ending without a result: it would be one of several in a row, at
/// different tasks. Such an attempt is not charged.
pub fn blames_preset(view: &dyn View, scope: &ParkingScope, ending: Ending, task: &TaskId) -> Result<bool> {
    let row = view.parking(&Subject::Preset(scope.preset.clone()))?;
    let Some(row) = row.filter(|row| row.ending.is_some_and(is_without_result)) else { return Ok(false) };
    let tasks: BTreeSet<&str> =
        row.attempts.iter().map(|attempt| attempt.task.as_str()).chain([task.as_str()]).collect();
    Ok(is_without_result(ending) && row.in_a_row + 1 >= IN_A_ROW && tasks.len() > 1)
}

/// Whether a runner may take a task for the preset of this scope.
pub fn gate(view: &dyn View, judge: &dyn Judge, scope: &ParkingScope) -> Result<Gate> {
    let mut due = Vec::new();
    let mut closed: Option<Parking> = None;
    for subject in scope.subjects() {
        let Some(row) = view.parking(&subject)?.filter(|row| row.parked_at.is_some()) else { continue };
        if is_due(&row, scope, view.now()) && !is_being_tried(view, judge, &row)? {
            due.push(row);
        } else if closed.as_ref().is_none_or(|other| is_later(&row, other)) {
            closed = Some(row);
        }
    }
    Ok(match closed {
        Some(row) => Gate::Closed(Box::new(row)),
        None if due.is_empty() => Gate::Open,
        None => Gate::Probe(due),
    })
}

/// Records that what is parked is being tried under this lease.
pub fn begin_probe(tx: &mut dyn Tx, rows: &[Parking], fence: Fence) -> Result<()> {
    for row in rows {
        tx.save_parking(&Parking { probe: Some(fence), ..row.clone() })?;
    }
    Ok(())
}

/// Makes what is parked for this scope due now, because a person asks for it. It stays parked until the try succeeds.
pub fn request_try(tx: &mut dyn Tx, scope: &ParkingScope) -> Result<()> {
    let now = tx.now();
    for subject in scope.subjects() {
        if let Some(row) = tx.parking(&subject)?.filter(|row| row.parked_at.is_some()) {
            let due = Parking { next_try_at: Some(now), resets_at: None, until_changed: None, ..row };
            tx.save_parking(&due)?;
        }
    }
    Ok(())
}

fn is_due(row: &Parking, scope: &ParkingScope, now: Timestamp) -> bool {
    match &row.until_changed {
        Some(fingerprint) => *fingerprint != scope.fingerprint,
        None => row.tries_at().is_some_and(|at| at <= now),
    }
}

fn is_being_tried(view: &dyn View, judge: &dyn Judge, row: &Parking) -> Result<bool> {
    let Some(fence) = row.probe else { return Ok(false) };
    let lease = view.lease_by_fence(fence)?;
    Ok(lease.is_some_and(|lease| lease.state(view.now(), judge) == LeaseState::Live))
}

/// Whether `row` is parked longer than `other`. Without a time, a person has to act.
fn is_later(row: &Parking, other: &Parking) -> bool {
    match (row.tries_at(), other.tries_at()) {
        (None, _) => true,
        (_, None) => false,
        (Some(one), Some(two)) => one > two,
    }
}

/// The attempt broke off, for an unknown reason.
const fn is_without_result(ending: Ending) -> bool {
    matches!(ending, Ending::Crashed | Ending::Unclassified)
}

/// Counts an ending against the preset. True if it is to be parked; then the counted attempts are not charged.
fn count(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    preset: &Subject,
    caller: &Caller,
    ended: &EndedAttempt<'_>,
) -> Result<bool> {
    let row = tx.parking(preset)?.unwrap_or_else(|| Parking::new(preset.clone()));
    let without_result = is_without_result(ended.ending);
    let same = row.ending.is_some_and(|before| is_without_result(before) == without_result);
    let mut attempts = if same { row.attempts.clone() } else { Vec::new() };
    let (task, fence, cost) = (ended.task.clone(), ended.fence, ended.cost);
    attempts.push(CountedAttempt { task, fence, cost });
    let in_a_row = if same { row.in_a_row.saturating_add(1) } else { 1 };
    let tasks: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.task.as_str()).collect();
    let to_blame = in_a_row >= IN_A_ROW && (tasks.len() > 1 || !without_result);
    if to_blame && without_result {
        for attempt in &mut attempts {
            undo(tx, ctx, caller, attempt)?;
            attempt.cost = Cost::Nothing;
        }
    }
    let first = attempts.len().saturating_sub(usize::try_from(IN_A_ROW).unwrap_or(usize::MAX));
    attempts.drain(..first);
    tx.save_parking(&Parking { ending: Some(ended.ending), in_a_row, attempts, ..row })?;
    Ok(to_blame)
}

/// Takes back what an attempt has cost its task, and the consequence for the task's status.
fn undo(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, counted: &CountedAttempt) -> Result<()> {
    let id = &counted.task;
    let Some(task) = tx.task(id, &ctx.viewer(tx, None)?)? else { return Ok(()) };
    let resource = Resource::task(id);
    let (edit, moved) = match counted.cost {
        Cost::Nothing => return Ok(()),
        Cost::Attempt => {
            let charged = |attempt: &Attempt| attempt.fence == counted.fence && attempt.charged;
            for attempt in tx.attempts(&resource)?.into_iter().filter(charged) {
                tx.update_attempt(&attempt.id, &Attempt { charged: false, ..attempt.clone() })?;
            }
            let attempts = Some(task.attempts.saturating_sub(1));
            (TaskEdit { attempts, ..TaskEdit::default() }, task.status == TaskStatus::Failed)
        }
        Cost::Rejection => {
            let rejections = Some(task.rejections.saturating_sub(1));
            let moved = matches!(task.status, TaskStatus::Pending | TaskStatus::Failed);
            (TaskEdit { rejections, ..TaskEdit::default() }, moved)
        }
    };
    tx.edit_task(id, &edit, None)?;
    let latest = tx.latest_lease(&resource)?.filter(|lease| lease.fence == counted.fence && moved);
    if let Some(lease) = latest {
        let back = lease.claimed_from.unwrap_or(TaskStatus::Pending);
        let message = Some("the agent could not work at all");
        kernel::override_status(tx, ctx, caller, id, back, message, false)?;
    }
    Ok(())
}

fn park(
    tx: &mut dyn Tx,
    scope: &ParkingScope,
    subject: Subject,
    pause: Pause,
    actor: &str,
    (ending, reason, resets_at): (Ending, &str, Option<Timestamp>),
) -> Result<Parking> {
    let now = tx.now();
    let row = tx.parking(&subject)?.unwrap_or_else(|| Parking::new(subject));
    let next_try_at = match pause {
        Pause::Doubling(first, longest) if resets_at.is_none() => {
            Some(now.after(first.saturating_mul(1 << row.times_parked.min(16)).min(longest)))
        }
        _ => None,
    };
    let parked = Parking {
        ending: Some(ending),
        parked_at: Some(now),
        next_try_at,
        resets_at,
        times_parked: row.times_parked.saturating_add(1),
        reason: Some(reason.to_owned()),
        until_changed: matches!(pause, Pause::UntilChanged).then(|| scope.fingerprint.clone()),
        probe: None,
        ..row
    };
    tx.save_parking(&parked)?;
    let detail = json!({
        "subject": parked.subject.to_string(), "preset": scope.preset, "ending": ending,
        "reason": reason, "resetsAt": resets_at,
    });
    tx.append(NewEvent::new(EventKind::PresetParked, actor).detail(detail))?;
    Ok(parked)
}

/// Clears the row of a subject that works again.
fn clear(tx: &mut dyn Tx, subject: &Subject, actor: &str) -> Result<()> {
    let Some(row) = tx.parking(subject)? else { return Ok(()) };
    let clean = Parking::new(subject.clone());
    if row == clean {
        return Ok(());
    }
    tx.save_parking(&clean)?;
    if row.parked_at.is_some() {
        let detail = json!({"subject": subject.to_string()});
        tx.append(NewEvent::new(EventKind::PresetUnparked, actor).detail(detail))?;
    }
    Ok(())
}
