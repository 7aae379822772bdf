//! The keeper: renews a lease while some other process lives, and lets it go when that dies.
//!
//! The lease records that process, so its death frees the lease also if the keeper is gone; the keeper makes sure that
//! it is renewed before, and closed at once after.

use std::os::fd::AsFd;
use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Liveness};
use tenure_core::lease::Lease;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};

use crate::beat::{Renewal, Tenant, rhythm};
use crate::database::DatabaseFile;
use crate::processes;
use crate::wait::until_any;

/// How the keeping ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The process died, and the lease was let go.
    LetGo,
    /// The lease was over before.
    Over,
}

/// Keeps `lease` for the process that it records. Returns when there is nothing left to keep.
pub fn keep(
    store: &dyn Store,
    ctx: Context<'_>,
    task: &TaskName,
    lease: &Lease,
    interval: Duration,
    database: Option<&DatabaseFile>,
) -> Result<Kept> {
    let Some(process) = &lease.process else {
        return Err(Error::invalid("this lease records no process to watch"));
    };
    let caller = Caller::new(lease.holder.clone()).with_fence(Some(lease.fence));
    let every = rhythm(interval, lease.ttl);
    let tenant = Tenant { ctx, task, caller: &caller, fence: lease.fence };
    let watched = processes::watch(process.process.pid);
    loop {
        // Asked after the descriptor was opened, so that it is not that of a later process with the same pid.
        let is_dead = || ctx.judge.liveness(process) == Liveness::Dead;
        if is_dead() {
            return let_go(store, ctx, lease);
        }
        if database.is_some_and(|file| file.loss().is_some()) {
            return Ok(Kept::Over);
        }
        match tenant.renew(store, None) {
            // A store that does not answer now may do so at the next beat; the lease ends by itself if not.
            Renewal::Held | Renewal::Unclear(_) => {}
            // The store saw the death first.
            Renewal::Lost(_) if is_dead() => return let_go(store, ctx, lease),
            Renewal::Spoken | Renewal::Lost(_) => return Ok(Kept::Over),
        }
        let fds: Vec<_> = watched.iter().map(AsFd::as_fd).collect();
        if until_any(&fds, every).first() == Some(&true) {
            return let_go(store, ctx, lease);
        }
    }
}

fn let_go(store: &dyn Store, ctx: Context<'_>, lease: &Lease) -> Result<Kept> {
    match store.write(Durability::Power, |tx| kernel::release(tx, &ctx, &lease.holder.id, lease)) {
        Ok(_) => Ok(Kept::LetGo),
        Err(Error::LockNotFound { .. }) => Ok(Kept::Over),
        Err(error) => Err(error),
    }
}
