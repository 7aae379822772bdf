//! A runner's place: a lease in the project's store, granted in the transaction that registers the runner (R1).

use serde_json::json;
use tenure_core::error::Locked;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::{EndReason, Lease, LeaseState, Resource, ResourceKind};
use tenure_core::rules::{close_session, open_session};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::session::SessionState;
use tenure_core::store::Durability;
use tenure_core::{Error, Result};
use tenure_lock::BootTime;

use super::{Bell, Site};
use crate::ending::{Scope, finish_ending};

/// A runner that has its place.
pub(super) struct Seat {
    pub(super) runner: Runner,
    pub(super) caller: Caller,
    pub(super) slot: Lease,
    /// When the slot and the session were asked for.
    pub(super) asked: BootTime,
    /// Of the session.
    pub(super) session: Lease,
    /// What the reconcile before the start has closed.
    pub(super) lapsed: Vec<(Lease, LeaseState)>,
}

/// Puts right what the last one left, then takes the first free place. All taken is a refusal that names who has it.
pub(super) fn take(site: &Site<'_>) -> Result<Seat> {
    let id = site.ctx.ids.uuid();
    let holder = Holder::runner(&id);
    let caller = Caller::new(holder).with_process(site.me.clone());
    let repaired = site.store.write(Durability::Power, |tx| kernel::reconcile(tx, &site.ctx, &id))?;
    for (lease, _) in &repaired.leases {
        site.log.line(&format!("Closed the lapsed lease {} of {}", lease.id, lease.holder));
    }
    let cleared = finish_ending(site.store, &site.ctx, Scope::Abandoned, &id)?;
    for attempt in &cleared.ended {
        site.log.line(&format!("Ended what was left of attempt {}", attempt.id));
    }
    let mut terms = Terms::new(site.orders.timing.stale);
    terms.doorbell = site.doorbell.map(|bell: Bell<'_>| bell.address.to_owned());
    let asked = BootTime::now();
    let taken = site.store.write(Durability::Power, |tx| {
        let mut refusal: Option<Box<Locked>> = None;
        for number in 0..site.orders.places.max(1) {
            let place = Resource::new(ResourceKind::Runner, number.to_string());
            match kernel::acquire_resource(tx, &site.ctx, &caller, &place, "of this project", &terms)? {
                Ok(slot) => {
                    let now = tx.now();
                    let plan = &site.orders.session;
                    let (ctx, options) = (&site.ctx, &plan.options);
                    let session = match open_session(tx, ctx, &caller, &plan.id, options, &terms)? {
                        Ok((_, lease)) => lease,
                        // The place goes back with it.
                        Err(locked) => return Err(Error::Locked(locked)),
                    };
                    let runner = Runner {
                        id: id.clone(),
                        status: RunnerStatus::Running,
                        process: site.me.clone(),
                        project_path: site.orders.root.to_string_lossy().into_owned(),
                        section: site.orders.section.as_ref().map(|(id, _)| id.clone()),
                        preset: site.orders.preset.clone(),
                        current_task: None,
                        log_path: Some(site.log.path().to_string_lossy().into_owned()),
                        started_at: now,
                        heartbeat_at: now,
                        completed_at: None,
                        error: None,
                    };
                    tx.save_runner(&runner)?;
                    let detail = json!({"runner": id, "pid": site.me.process.pid, "preset": runner.preset});
                    tx.append(NewEvent::new(EventKind::RunnerStarted, &id).detail(detail))?;
                    return Ok(Ok((slot, session, runner)));
                }
                Err(locked) => {
                    refusal.get_or_insert(locked);
                }
            }
        }
        Ok(Err(refusal))
    })?;
    match taken {
        Ok((slot, session, runner)) => {
            let seat = Seat { runner, caller, slot, asked, session, lapsed: repaired.leases };
            announce(site, &seat.runner);
            Ok(seat)
        }
        Err(Some(locked)) => Err(Error::Locked(locked)),
        Err(None) => Err(Error::General("there is no place for a runner".to_owned())),
    }
}

pub(super) fn announce(site: &Site<'_>, runner: &Runner) {
    site.outside.announce(runner, site.orders.section_name());
}

/// Says in the row what the runner does. A store that is busy or gone does not stop the work.
pub(super) fn note(
    site: &Site<'_>,
    seat: &mut Seat,
    status: RunnerStatus,
    task: Option<tenure_core::id::TaskId>,
) {
    if seat.runner.status == status && seat.runner.current_task == task {
        return;
    }
    seat.runner.status = status;
    seat.runner.current_task = task;
    seat.runner.heartbeat_at = site.clock.now();
    let _ = site.store.write(Durability::Process, |tx| tx.save_runner(&seat.runner));
    announce(site, &seat.runner);
}

/// The last word: the row, the event and the place, together.
pub(super) fn give_up(
    site: &Site<'_>,
    seat: &mut Seat,
    status: RunnerStatus,
    session: SessionState,
    error: Option<String>,
) {
    seat.runner.status = status;
    seat.runner.current_task = None;
    seat.runner.completed_at = Some(site.clock.now());
    seat.runner.heartbeat_at = site.clock.now();
    seat.runner.error = error;
    let kind =
        if status == RunnerStatus::Failed { EventKind::RunnerFailed } else { EventKind::RunnerStopped };
    announce(site, &seat.runner);
    let said = site.store.write(Durability::Power, |tx| {
        tx.save_runner(&seat.runner)?;
        let detail = json!({"runner": seat.runner.id, "reason": seat.runner.error});
        tx.append(NewEvent::new(kind, &seat.runner.id).detail(detail))?;
        close_session(tx, &site.ctx, &seat.session, session, seat.runner.error.as_deref())?;
        kernel::release_resource(tx, &site.ctx, &seat.slot, EndReason::Released)
    });
    if let Err(error) = said {
        site.log.line(&format!("The end could not be written: {error}"));
    }
}
