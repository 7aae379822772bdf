//! Parking: a preset whose agent cannot work on any task is not tried on the rest of the backlog.
//!
//! An agent that reports why, for example a usage limit or an expired login, parks its preset at its first ending, in the
//! transaction that returns the task. An agent whose output says nothing parks it with three quick failures in a row, and
//! the tasks of those go back to where they were claimed from. Wake-up does not try a parked preset before the limit's
//! reset where that is known, else for a minute, then two, up to an hour.

use std::time::Duration;

use serde_json::json;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::lease::Resource;
use tenure_core::runner::PresetHealth;
use tenure_core::store::{Durability, TaskEdit, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, Timestamp, kernel};

use super::RunnerContext;
use super::agent::AttemptReport;
use super::slot::RunnerSlot;
use crate::supervise::{CommandEnd, Exit};

const QUICK: Duration = Duration::from_secs(30);
const IN_A_ROW: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// Projects that wait for the same reset are spread over this time after it.
const SPREAD_MILLIS: i64 = 60_000;

/// Records how an attempt ended whose agent reported no obstacle. Returns the reason if that has parked the preset.
pub(super) fn record_attempt(
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    preset: &str,
    report: &AttemptReport,
) -> Result<Option<String>> {
    let (quick, task) = match &report.ended {
        CommandEnd::Exited { exit: Exit::Code(code), reported: false, task } if *code != 0 => {
            (report.took < QUICK, task)
        }
        CommandEnd::NotStarted { task, .. } => (true, task),
        CommandEnd::Exited { task, .. } | CommandEnd::Overdue { task, .. } => (false, task),
        CommandEnd::Interrupted { .. }
        | CommandEnd::Lost(_)
        | CommandEnd::Kept { .. }
        | CommandEnd::NotBegun { .. } => return Ok(None),
    };
    let why = report.last_line.clone().unwrap_or_else(|| report.sentence());
    cx.store.write(Durability::Power, |tx| {
        let mut health = tx.preset_health(preset)?.unwrap_or_else(|| healthy(preset));
        if !quick {
            if health != healthy(preset) {
                tx.save_preset_health(&healthy(preset))?;
            }
            return Ok(None);
        }
        health.quick_failures += 1;
        health.tasks.push(task.id.clone());
        if health.quick_failures < IN_A_ROW {
            tx.save_preset_health(&health)?;
            return Ok(None);
        }
        for id in &health.tasks {
            undo_failure(tx, cx, slot, id)?;
        }
        park(tx, preset, &slot.runner.id, &why, None)?;
        Ok(Some(why.clone()))
    })
}

/// Parks the preset, until shortly after `resets_at` if that is known. Quick failures are counted anew after it.
pub(super) fn park(
    tx: &mut dyn Tx,
    preset: &str,
    actor: &str,
    reason: &str,
    resets_at: Option<Timestamp>,
) -> Result<()> {
    let now = tx.now();
    let before = tx.preset_health(preset)?.map_or(0, |health| health.times_parked);
    let pause = FIRST_PAUSE.saturating_mul(1 << before.min(6)).min(LONGEST_PAUSE);
    let spread = Duration::from_millis(now.as_millis().rem_euclid(SPREAD_MILLIS).unsigned_abs());
    tx.save_preset_health(&PresetHealth {
        parked_at: Some(now),
        next_try_at: Some(resets_at.map_or(now.after(pause), |at| at.after(spread))),
        times_parked: before.saturating_add(1),
        reason: Some(reason.to_owned()),
        ..healthy(preset)
    })?;
    let detail = json!({"preset": preset, "reason": reason});
    tx.append(NewEvent::new(EventKind::PresetParked, actor).detail(detail)).map(drop)
}

/// Returns a failed task to the status it was claimed from, because its agent could not work at all.
fn undo_failure(tx: &mut dyn Tx, cx: &RunnerContext<'_>, slot: &RunnerSlot, id: &TaskId) -> Result<()> {
    let viewer = cx.exec.ctx.viewer(tx, None)?;
    let Some(task) = tx.task(id, &viewer)? else { return Ok(()) };
    let from = tx.latest_lease(&Resource::task(id))?.and_then(|lease| lease.claimed_from);
    let from = from.unwrap_or(TaskStatus::Pending);
    let judged = match (from, task.status) {
        (TaskStatus::Review, TaskStatus::Pending | TaskStatus::Failed) => true,
        (_, TaskStatus::Failed) => false,
        _ => return Ok(()),
    };
    if judged {
        let rejections = Some(task.rejections.saturating_sub(1));
        tx.edit_task(id, &TaskEdit { rejections, ..TaskEdit::default() }, None)?;
    }
    let message = Some("the agent could not work at all");
    kernel::override_status(tx, &cx.exec.ctx, &slot.caller, id, from, message, false).map(drop)
}

/// Lets a parked preset be tried again, at the request of a person.
pub fn unpark(tx: &mut dyn Tx, preset: &str, actor: &str) -> Result<bool> {
    match tx.preset_health(preset)? {
        Some(health) if health.parked_at.is_some() => {
            // How often it was parked is kept until an attempt of it works.
            let tried = PresetHealth { times_parked: health.times_parked, ..healthy(preset) };
            tx.save_preset_health(&tried)?;
            tx.append(NewEvent::new(EventKind::PresetUnparked, actor).detail(json!({"preset": preset})))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn healthy(preset: &str) -> PresetHealth {
    PresetHealth {
        preset: preset.to_owned(),
        quick_failures: 0,
        tasks: Vec::new(),
        parked_at: None,
        next_try_at: None,
        times_parked: 0,
        reason: None,
    }
}
