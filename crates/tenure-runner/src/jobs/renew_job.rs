//! The heartbeat of a job: renews the job, in its coordinator, and every item that is being run.

use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};
use tenure_lock::BootTime;

use super::control::JobControl;
use crate::heartbeat::{Heartbeat, HeartbeatEnd, LeaseLoss, Renew, Renewal};

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

/// Renews until the job is over. Stops the workers if its leases are lost.
pub(super) fn renew_until_stopped(heartbeat: Heartbeat<'_>, mut asked: BootTime, mut renew: RenewJob<'_>) {
    let control = renew.control;
    loop {
        match heartbeat.run(asked, &mut renew) {
            HeartbeatEnd::Stopped | HeartbeatEnd::Finished => return,
            HeartbeatEnd::Lost(LeaseLoss::Refused(error)) => return control.fail(*error),
            // Ends the items, because another process may hold them soon. The job's own renewal continues once
            // the store answers, unless another process holds the job by then.
            HeartbeatEnd::Lost(LeaseLoss::Unreachable(_)) => {
                control.end_items();
                asked = BootTime::now();
            }
            HeartbeatEnd::Lost(loss) => return control.fail_at_once(Error::General(loss.to_string())),
        }
    }
}
