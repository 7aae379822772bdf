//! Parking: an agent that fails at once, three times in a row, is not let loose on the rest of the backlog.
//!
//! An expired login or a missing network ends every attempt within seconds. The tasks of those attempts go back to
//! where they were taken from, and wake-up leaves the preset alone for a minute, then two, up to an hour.

use std::time::Duration;

use serde_json::json;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::lease::Resource;
use tenure_core::runner::PresetHealth;
use tenure_core::store::{Durability, TaskEdit, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Result, kernel};

use super::Site;
use super::agent::Report;
use super::place::Seat;
use crate::supervise::{Ended, Exit};

const QUICK: Duration = Duration::from_secs(30);
const IN_A_ROW: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Remembers how an attempt went. The reason if that has parked the preset.
pub(super) fn note(site: &Site<'_>, seat: &Seat, preset: &str, report: &Report) -> Result<Option<String>> {
    let (quick, task) = match &report.ended {
        Ended::Exited { exit: Exit::Code(code), spoken: false, task } if *code != 0 => {
            (report.took < QUICK, task)
        }
        Ended::NotStarted { task, .. } => (true, task),
        Ended::Exited { task, .. } | Ended::Overdue { task, .. } => (false, task),
        Ended::Interrupted { .. } | Ended::Lost(_) => return Ok(None),
    };
    let why = report.said.clone().unwrap_or_else(|| report.sentence());
    site.store.write(Durability::Power, |tx| {
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
        for id in std::mem::take(&mut health.tasks) {
            take_back(tx, site, seat, &id)?;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << health.times_parked.min(6)).min(LONGEST_PAUSE);
        health.parked_at = Some(tx.now());
        health.next_try_at = Some(tx.now().after(pause));
        health.times_parked += 1;
        health.quick_failures = 0;
        health.reason = Some(why.clone());
        tx.save_preset_health(&health)?;
        let detail = json!({"preset": preset, "reason": why});
        tx.append(NewEvent::new(EventKind::PresetParked, &seat.runner.id).detail(detail))?;
        Ok(Some(why.clone()))
    })
}

/// What an agent that could not work said about a task does not count: it goes back to where it was taken from.
fn take_back(tx: &mut dyn Tx, site: &Site<'_>, seat: &Seat, id: &TaskId) -> Result<()> {
    let viewer = site.ctx.viewer(tx, None)?;
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
    kernel::override_status(tx, &site.ctx, &seat.caller, id, from, message, false).map(drop)
}

/// A person tries again.
pub fn unpark(tx: &mut dyn Tx, preset: &str, actor: &str) -> Result<bool> {
    match tx.preset_health(preset)? {
        Some(health) if health.parked_at.is_some() => {
            // How often it was parked stays, until an attempt of it works.
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
