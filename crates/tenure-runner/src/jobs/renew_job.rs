//! The heartbeat of a job: renews the job, in its coordinator, and every item that is being run.

use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};
use tenure_lock::BootTime;

use super::control::JobControl;
use crate::heartbeat::{HeartbeatEnd, LeaseLoss, Renew, Renewal};

pub(super) struct RenewJob<'a> {
    pub(super) ctx: Context<'a>,
    pub(super) control: &'a JobControl,
}

impl Renew for RenewJob<'_> {
    fn renew(&mut self, store: &dyn Store, asked: BootTime) -> Renewal {
        match self.try_renew(store, asked) {
            Ok(renewal) => renewal,
            Err(unclear) => Renewal::Unclear(unclear),
        }
    }

    fn counted_from(&self) -> Option<BootTime> {
        self.control.counted_from()
    }
}

impl RenewJob<'_> {
    /// A lost item stops its worker; a lost job stops them all.
    fn try_renew(&self, store: &dyn Store, asked: BootTime) -> Result<Renewal> {
        let (job, items) = self.control.leases();
        if job.is_none() && items.is_empty() {
            return Ok(Renewal::Held);
        }
        let (lost_job, lost) = store.write(Durability::Process, |tx| {
            let lost_job = match &job {
                Some(lease) => kernel::renew_resource(tx, &self.ctx, lease, None)?.is_none(),
                None => false,
            };
            let mut lost = Vec::new();
            for lease in &items {
                if !kernel::renew_item(tx, &self.ctx, lease)? {
                    lost.push(lease.fence);
                }
            }
            Ok((lost_job, lost))
        })?;
        for lease in &items {
            if lost.contains(&lease.fence) {
                self.control.lose(lease.fence);
            } else {
                self.control.renewed(lease.fence, asked);
            }
        }
        Ok(match job.filter(|_| lost_job) {
            Some(lease) => {
                let error = Error::WorkLost { what: lease.resource.to_string() };
                Renewal::Lost(LeaseLoss::Refused(Box::new(error)))
            }
            None => Renewal::Held,
        })
    }
}

/// Stops the workers if the leases are lost.
pub(super) fn conclude(control: &JobControl, end: HeartbeatEnd) {
    match end {
        HeartbeatEnd::Stopped | HeartbeatEnd::Finished => {}
        HeartbeatEnd::Lost(LeaseLoss::Refused(error)) => control.fail(*error),
        // The items' leases may end soon, too: their processes are killed without a grace period.
        HeartbeatEnd::Lost(LeaseLoss::Unreachable(_)) => {
            control.fail_at_once(Error::store("the leases could not be renewed: the store does not answer"));
        }
        HeartbeatEnd::Lost(loss) => control.fail_at_once(Error::General(loss.to_string())),
    }
}
