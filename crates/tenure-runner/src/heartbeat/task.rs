//! Renewing the lease on a task, together with its section.

use std::time::Duration;

use tenure_core::error::TaskName;
use tenure_core::holder::Caller;
use tenure_core::kernel::{self, Beat};
use tenure_core::lease::{EndReason, Lease};
use tenure_core::store::{Durability, Store, View};
use tenure_core::{Context, Error, Result};
use tenure_lock::BootTime;

use super::{LeaseLoss, Renew, Renewal};

/// The lease on one task.
#[derive(Debug, Clone, Copy)]
pub struct RenewTask<'a> {
    pub ctx: Context<'a>,
    pub task: &'a TaskName,
    pub caller: &'a Caller,
    pub lease: &'a Lease,
    /// The minimum time for which each renewal extends the section lease; the task's ttl if None.
    pub section_ttl: Option<Duration>,
}

impl Renew for RenewTask<'_> {
    /// Renews the lease, even an expired one if the task was granted to no other holder since.
    fn renew(&mut self, store: &dyn Store, _asked: BootTime) -> Renewal {
        let beat = Beat { revive: true, section_ttl: self.section_ttl, ..Beat::default() };
        let renewed =
            store.write(Durability::Process, |tx| kernel::renew(tx, &self.ctx, self.caller, self.task, beat));
        match kernel::recording_rejection(store, renewed) {
            Ok(_) => Renewal::Held,
            Err(error @ (Error::LeaseLost(_) | Error::NotHolder(_) | Error::TaskNotFound { .. })) => {
                match store.read(|view| is_finished(view, self.lease)) {
                    Ok(true) => Renewal::Finished,
                    Ok(false) => Renewal::Lost(LeaseLoss::Refused(Box::new(error))),
                    Err(unclear) => Renewal::Unclear(unclear),
                }
            }
            Err(unclear) => Renewal::Unclear(unclear),
        }
    }
}

/// Whether the holder ended this lease by finishing or releasing the task.
pub(crate) fn is_finished(view: &dyn View, lease: &Lease) -> Result<bool> {
    let found = view.lease_by_fence(lease.fence)?.filter(|found| found.is_same(lease));
    let ended = found.and_then(|lease| lease.ended);
    Ok(matches!(ended, Some((_, EndReason::Completed | EndReason::Released))))
}
