//! A runner's slot: a lease in the project's store, granted in the transaction that registers the runner (R1).

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

use super::RunnerContext;
use crate::reap::{Scope, reap_attempts};

/// A registered runner and its slot.
pub(super) struct RunnerSlot {
    pub(super) runner: Runner,
    pub(super) caller: Caller,
    pub(super) lease: Lease,
    /// When the slot and the session were requested.
    pub(super) asked: BootTime,
    /// The lease of the session.
    pub(super) session: Lease,
    /// The leases that the reconcile at start closed.
    pub(super) lapsed: Vec<(Lease, LeaseState)>,
}

/// Repairs what earlier runners left, then takes the first free slot. If all are taken, the error names a holder.
pub(super) fn acquire(cx: &RunnerContext<'_>) -> Result<RunnerSlot> {
    let id = cx.exec.ctx.ids.uuid();
    let holder = Holder::runner(&id);
    let caller = Caller::new(holder).with_process(cx.exec.me.clone());
    let repaired = cx.store.write(Durability::Power, |tx| kernel::reconcile(tx, &cx.exec.ctx, &id))?;
    for (lease, _) in &repaired.leases {
        cx.log.line(&format!("Closed the lapsed lease {} of {}", lease.id, lease.holder));
    }
    let reaped = reap_attempts(cx.store, &cx.exec.ctx, Scope::Abandoned, &id)?;
    for attempt in &reaped.ended {
        tracing::debug!(attempt = %attempt.id, "reaped");
        cx.log.line(&format!("Reaped the processes left by attempt {}", attempt.id));
    }
    let mut terms = Terms::new(cx.options.timing.stale);
    terms.doorbell = cx.exec.doorbell.map(|bell| bell.address.to_owned());
    let asked = BootTime::now();
    let taken = cx.store.write(Durability::Power, |tx| {
        let mut refusal: Option<Box<Locked>> = None;
        let name = match cx.options.slots {
            ..=1 => String::new(),
            slots => format!("all {slots} runners of this project are running"),
        };
        for number in 0..cx.options.slots.max(1) {
            let resource = Resource::new(ResourceKind::Runner, number.to_string());
            match kernel::acquire_resource(tx, &cx.exec.ctx, &caller, &resource, &name, &terms)? {
                Ok(lease) => {
                    let now = tx.now();
                    let plan = &cx.options.session;
                    let (ctx, options) = (&cx.exec.ctx, &plan.options);
                    let session = match open_session(tx, ctx, &caller, &plan.id, options, &terms)? {
                        Ok((_, lease)) => lease,
                        // The error aborts the transaction, so the slot is not taken.
                        Err(locked) => return Err(Error::Locked(locked)),
                    };
                    let runner = Runner {
                        id: id.clone(),
                        status: RunnerStatus::Running,
                        process: cx.exec.me.clone(),
                        project_path: cx.options.root.to_string_lossy().into_owned(),
                        section: cx.options.section.as_ref().map(|(id, _)| id.clone()),
                        preset: cx.options.preset.clone(),
                        current_task: None,
                        log_path: Some(cx.log.path().to_string_lossy().into_owned()),
                        started_at: now,
                        heartbeat_at: now,
                        completed_at: None,
                        error: None,
                    };
                    tx.save_runner(&runner)?;
                    let detail =
                        json!({"runner": id, "pid": cx.exec.me.process.pid, "preset": runner.preset});
                    tx.append(NewEvent::new(EventKind::RunnerStarted, &id).detail(detail))?;
                    return Ok(Ok((lease, session, runner)));
                }
                Err(locked) => {
                    refusal.get_or_insert(locked);
                }
            }
        }
        Ok(Err(refusal))
    })?;
    match taken {
        Ok((lease, session, runner)) => {
            let slot = RunnerSlot { runner, caller, lease, asked, session, lapsed: repaired.leases };
            announce(cx, &slot.runner);
            Ok(slot)
        }
        Err(Some(locked)) => Err(Error::Locked(locked)),
        Err(None) => Err(Error::General("the project has no runner slot".to_owned())),
    }
}

pub(super) fn announce(cx: &RunnerContext<'_>, runner: &Runner) {
    cx.callbacks.announce(runner, cx.options.section_name());
}

/// Records in the runner's row what the runner does. A store that is busy or gone does not stop the work.
pub(super) fn save_status(
    cx: &RunnerContext<'_>,
    slot: &mut RunnerSlot,
    status: RunnerStatus,
    task: Option<tenure_core::id::TaskId>,
) {
    if slot.runner.status == status && slot.runner.current_task == task {
        return;
    }
    slot.runner.status = status;
    slot.runner.current_task = task;
    slot.runner.heartbeat_at = cx.exec.clock.now();
    let _ = cx.store.write(Durability::Process, |tx| tx.save_runner(&slot.runner));
    announce(cx, &slot.runner);
}

/// Ends the runner's row and session and releases the slot in one transaction, with the event.
pub(super) fn release(
    cx: &RunnerContext<'_>,
    slot: &mut RunnerSlot,
    status: RunnerStatus,
    session: SessionState,
    error: Option<String>,
) {
    slot.runner.status = status;
    slot.runner.current_task = None;
    slot.runner.completed_at = Some(cx.exec.clock.now());
    slot.runner.heartbeat_at = cx.exec.clock.now();
    slot.runner.error = error;
    let kind =
        if status == RunnerStatus::Failed { EventKind::RunnerFailed } else { EventKind::RunnerStopped };
    announce(cx, &slot.runner);
    if cx.outage.is_on() {
        // The end of this process frees everything that it holds, so it does not wait for the store.
        cx.log.line("The end of the runner is not recorded: the store does not answer");
        return;
    }
    let released = cx.store.write(Durability::Power, |tx| {
        tx.save_runner(&slot.runner)?;
        let detail = json!({"runner": slot.runner.id, "reason": slot.runner.error});
        tx.append(NewEvent::new(kind, &slot.runner.id).detail(detail))?;
        close_session(tx, &cx.exec.ctx, &slot.session, session, slot.runner.error.as_deref())?;
        kernel::release_resource(tx, &cx.exec.ctx, &slot.lease, EndReason::Released)
    });
    if let Err(error) = released {
        cx.log.line(&format!("The end of the runner could not be recorded: {error}"));
    }
}
