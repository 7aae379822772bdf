//! Parking: after an agent could not work with an account, a host or a preset, no runner takes a task that needs it for a
//! while. When the pause is over, one task is tried first.

use tenure_core::duration::format_rounded;
use tenure_core::id::TaskId;
use tenure_core::kernel::{Grant, Terms};
use tenure_core::lease::Lease;
use tenure_core::parking::Parking;
use tenure_core::rules::{Gate, begin_probe, gate, park_misconfigured};
use tenure_core::store::{Durability, TaskFilter, Tx};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result, Timestamp};

use super::agent::preset_for;
use super::pick_work::{Pick, pick_task, release_section_unless_needed};
use super::slot::RunnerSlot;
use super::{Purpose, RunnerContext};

/// Fails if something that the agent of the granted task needs is parked; the error undoes the grant. If the pause is
/// over, this task becomes the probe.
pub(super) fn admit(tx: &mut dyn Tx, cx: &RunnerContext<'_>, grant: &Grant, purpose: Purpose) -> Result<()> {
    let scope = cx.callbacks.preset(&preset_for(cx, purpose))?.scope;
    match gate(tx, cx.exec.ctx.judge, &scope)? {
        Gate::Open => Ok(()),
        Gate::Probe(due) => begin_probe(tx, &due, grant.lease.fence),
        Gate::Closed(parking) => Err(closed(&parking, tx.now())),
    }
}

/// Parks a preset of this runner that cannot be started as it is configured now, and then fails, so that the runner
/// ends.
pub(super) fn check_presets(cx: &RunnerContext<'_>, slot: &RunnerSlot) -> Result<()> {
    for name in std::iter::once(&cx.options.preset).chain(&cx.options.reviewer) {
        let Some(unusable) = cx.callbacks.unusable(name) else { continue };
        let (parking, now) = cx.store.write(Durability::Power, |tx| {
            let reason = unusable.error.reason();
            let parking = park_misconfigured(tx, &unusable.scope, &reason, &slot.runner.id)?;
            Ok((parking, tx.now()))
        })?;
        return Err(closed(&parking, now));
    }
    Ok(())
}

/// The error with which a runner ends because of a parking.
pub(super) fn closed(parking: &Parking, now: Timestamp) -> Error {
    let why = parking.reason.as_deref().unwrap_or("its last attempts failed");
    let next = match parking.tries_at().filter(|at| *at > now) {
        Some(at) => format!("; it is tried again in {}", format_rounded(at.since(now))),
        None => String::new(),
    };
    Error::General(format!("{} is parked: {why}{next}", parking.subject.label()))
}

/// The next ready task that was not set aside. A task is set aside after its attempt in this run ended
/// without a result.
pub(super) fn pick_another(
    tx: &mut dyn Tx,
    cx: &RunnerContext<'_>,
    slot: &RunnerSlot,
    set_aside: &[TaskId],
    section: Option<&Lease>,
    terms: &Terms,
) -> Result<Option<Pick>> {
    if set_aside.is_empty() || cx.options.task.is_some() {
        return Ok(None);
    }
    let viewer = cx.exec.ctx.viewer(tx, Some(&slot.caller.holder))?;
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::Pending]),
        section: cx.options.section.as_ref().map(|(id, _)| id.clone()),
        ready: true,
        limit: 100,
        ..TaskFilter::default()
    };
    for task in tx.list_tasks(&filter, &viewer)?.0 {
        if set_aside.contains(&task.id) {
            continue;
        }
        if let Pick::Task(grant, purpose) = pick_task(tx, cx, slot, &task.id, terms)? {
            release_section_unless_needed(tx, cx, section, &grant)?;
            return Ok(Some(Pick::Task(grant, purpose)));
        }
    }
    Ok(None)
}
