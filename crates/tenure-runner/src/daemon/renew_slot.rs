//! The runner's heartbeat: renews its slot, its session and its row while it works or idles.
//!
//! A lost slot ends the runner before its next task; a store that does not answer does not. An attempt has the heartbeat of
//! its task, which ends it when the task's lease is lost or could not be renewed in time.

use std::io::Write;
use std::sync::Mutex;

use rustix::fd::AsFd;
use tenure_core::lease::Lease;
use tenure_core::runner::Runner;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};
use tenure_lock::BootTime;

use super::slot::RunnerSlot;
use super::{RunnerCallbacks, RunnerContext, RunnerOptions};
use crate::heartbeat::{Heartbeat, HeartbeatEnd, LeaseLoss, Renew, Renewal};
use crate::sys::{LocalStream, local_pair};

pub(super) const SLOT_TAKEN: &str = "another runner has taken this slot or this session";

/// The heartbeat's thread, as seen by the runner's loop.
#[derive(Debug)]
pub(super) struct SlotHeartbeat {
    lost: Mutex<Option<String>>,
    bell: LocalStream,
}

impl SlotHeartbeat {
    /// Why the slot was lost, if it was.
    pub(super) fn lost(&self) -> Option<Error> {
        let why = self.lost.lock().ok()?.clone()?;
        Some(Error::General(why))
    }

    /// Makes a renewal due, because a ring may be wake-up's check whether this runner is alive.
    pub(super) fn beat_now(&self) {
        let _ = (&self.bell).write(&[1]);
    }
}

/// Runs `body` while a thread renews the slot.
pub(super) fn with_heartbeat<T>(
    cx: &RunnerContext<'_>,
    slot: &mut RunnerSlot,
    body: impl FnOnce(&mut RunnerSlot, &SlotHeartbeat) -> Result<T>,
) -> Result<T> {
    let broken = |e: std::io::Error| Error::General(format!("the heartbeat cannot be started: {e}"));
    let (bell, rung) = local_pair().map_err(broken)?;
    let (stop, stopped) = local_pair().map_err(broken)?;
    bell.set_nonblocking(true).map_err(broken)?;
    rung.set_nonblocking(true).map_err(broken)?;
    let state = SlotHeartbeat { lost: Mutex::default(), bell };
    let timing = &cx.options.timing;
    let (open, database, interval, ttl) =
        (cx.exec.open_store, cx.exec.database, timing.heartbeat, timing.stale);
    let mut asked = slot.asked;
    let mut renew = RenewSlot {
        ctx: cx.exec.ctx,
        options: cx.options,
        callbacks: cx.callbacks,
        slot: slot.lease.clone(),
        session: slot.session.clone(),
        id: slot.runner.id.clone(),
    };
    std::thread::scope(|scope| {
        let state = &state;
        let beating = move || {
            let (stop, doorbell) = (Some(stopped.as_fd()), Some(rung.as_fd()));
            let heartbeat = Heartbeat { open, database, interval, ttl, stop, doorbell };
            loop {
                match heartbeat.run(asked, &mut renew) {
                    // No work depends on the slot. When the store answers again, it renews the slot or names the
                    // holder that has taken it.
                    HeartbeatEnd::Lost(LeaseLoss::Unreachable(_)) => asked = BootTime::now(),
                    HeartbeatEnd::Lost(loss) => {
                        if let Ok(mut lost) = state.lost.lock() {
                            *lost = Some(loss.to_string());
                        }
                        return;
                    }
                    HeartbeatEnd::Stopped | HeartbeatEnd::Finished => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("runner-heartbeat".into());
        thread.spawn_scoped(scope, beating).map_err(broken)?;
        let answer = body(slot, state);
        // Closes the stream, which ends the thread.
        drop(stop);
        answer
    })
}

struct RenewSlot<'a> {
    ctx: Context<'a>,
    options: &'a RunnerOptions,
    callbacks: &'a dyn RunnerCallbacks,
    slot: Lease,
    session: Lease,
    id: String,
}

impl Renew for RenewSlot<'_> {
    fn renew(&mut self, store: &dyn Store, _asked: BootTime) -> Renewal {
        let renewed =
            store.write(Durability::Process, |tx| {
                let held = kernel::renew_resource(tx, &self.ctx, &self.slot, None)?
                    .and(kernel::renew_resource(tx, &self.ctx, &self.session, None)?);
                let row = match tx.runner(&self.id)? {
                    Some(row) if held.is_some() => Some(Runner { heartbeat_at: tx.now(), ..row }),
                    _ => None,
                };
                if let Some(row) = &row {
                    tx.save_runner(row)?;
                }
                Ok((held.is_some(), row))
            });
        match renewed {
            Ok((true, row)) => {
                if let Some(row) = row {
                    self.callbacks.announce(&row, self.options.section_name());
                }
                Renewal::Held
            }
            Ok((false, _)) => {
                let why = SLOT_TAKEN.to_owned();
                Renewal::Lost(LeaseLoss::Refused(Box::new(Error::General(why))))
            }
            Err(unclear) => Renewal::Unclear(unclear),
        }
    }
}
