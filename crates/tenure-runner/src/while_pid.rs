//! `tasks claim --while-pid`: keeps a lease while another process lives, and releases it when that process dies.
//!
//! The lease records that process, so its death frees the lease even if this keeper is gone. The keeper renews the
//! lease until then, and closes it at once afterwards.

use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Incarnation, Judge, Liveness};
use tenure_core::lease::Lease;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};
use tenure_lock::BootTime;

use crate::execution::Execution;
use crate::heartbeat::{Heartbeat, HeartbeatEnd, LeaseLoss, Renew, RenewTask, Renewal};
use crate::wait::Process;

/// How the keeper ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The process died, and the lease was released.
    Released,
    /// The lease had ended before.
    Over,
}

/// Keeps `lease` for the process that it records. Returns when there is nothing left to keep.
pub fn keep_while_alive(
    store: &dyn Store,
    exec: Execution<'_>,
    task: &TaskName,
    lease: &Lease,
    interval: Duration,
) -> Result<Kept> {
    let Execution { open_store: open, ctx, database, .. } = exec;
    let Some(watched) = &lease.process else {
        return Err(Error::invalid("this lease records no process to watch"));
    };
    let caller = Caller::holding(lease);
    let task = RenewTask { ctx, task, caller: &caller, lease, section_ttl: None };
    // Opened before its liveness is checked, so that it cannot be a later process with the same pid.
    let process = Process::open(watched.process.pid);
    let mut renew = RenewWhileAlive { task, watched, judge: ctx.judge };
    let stop = process.as_ref().and_then(Process::fd);
    let heartbeat = Heartbeat { open, database, interval, ttl: lease.ttl, stop, doorbell: None };
    // The claim was made by another process, so its moment is not known: the first beat is due at once.
    let mut asked = BootTime::after_boot(Duration::ZERO);
    loop {
        let end = if renew.is_dead() { HeartbeatEnd::Stopped } else { heartbeat.run(asked, &mut renew) };
        match end {
            HeartbeatEnd::Stopped => return release(store, ctx, lease),
            _ if renew.is_dead() => return release(store, ctx, lease),
            // The keeper does not supervise the work, so it cannot stop it. If the store answers again, the
            // lease may still be renewed.
            HeartbeatEnd::Lost(LeaseLoss::Unreachable(_)) => asked = BootTime::now(),
            HeartbeatEnd::Finished | HeartbeatEnd::Lost(_) => return Ok(Kept::Over),
        }
    }
}

struct RenewWhileAlive<'a> {
    task: RenewTask<'a>,
    watched: &'a Incarnation,
    judge: &'a dyn Judge,
}

impl RenewWhileAlive<'_> {
    fn is_dead(&self) -> bool {
        self.judge.liveness(self.watched) == Liveness::Dead
    }
}

impl Renew for RenewWhileAlive<'_> {
    fn renew(&mut self, store: &dyn Store, asked: BootTime) -> Renewal {
        if self.is_dead() { Renewal::Finished } else { self.task.renew(store, asked) }
    }
}

fn release(store: &dyn Store, ctx: Context<'_>, lease: &Lease) -> Result<Kept> {
    match store.write(Durability::Power, |tx| kernel::release(tx, &ctx, &lease.holder.id, lease)) {
        Ok(_) => Ok(Kept::Released),
        Err(Error::LockNotFound { .. }) => Ok(Kept::Over),
        Err(error) => Err(error),
    }
}
