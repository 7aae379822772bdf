//! The heartbeat of a job: one thread that renews the job, if it is ours, and every item that is being worked on.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};

use super::crew::Crew;
use crate::beat::{OpenStore, silence};
use crate::database::DatabaseFile;
use crate::wait::until_any;

pub(super) struct Heart<'a> {
    pub(super) open: OpenStore<'a>,
    pub(super) ctx: Context<'a>,
    pub(super) database: Option<&'a DatabaseFile>,
    pub(super) every: Duration,
    pub(super) ttl: Duration,
    pub(super) doorbell: Option<BorrowedFd<'a>>,
    pub(super) crew: &'a Crew,
}

impl Heart<'_> {
    pub(super) fn beat(&self, stopped: &UnixStream) {
        let mut fds = vec![stopped.as_fd()];
        fds.extend(self.doorbell);
        let mut store: Option<Box<dyn Store>> = None;
        let mut held = Instant::now();
        loop {
            if until_any(&fds, self.every).first() == Some(&true) {
                return;
            }
            if let Some(doorbell) = self.doorbell {
                silence(doorbell);
            }
            if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
                self.crew.fail(Error::General(loss.to_string()));
                return;
            }
            if store.is_none() {
                store = (self.open)().ok();
            }
            let beaten = store.as_ref().map_or(Ok(false), |store| self.renew(store.as_ref()).map(|()| true));
            match beaten {
                Ok(true) => held = Instant::now(),
                // Somebody else may have it all by now.
                Ok(false) | Err(_) if held.elapsed() >= self.ttl => {
                    self.crew
                        .fail(Error::store("the leases could not be renewed: the store does not answer"));
                    return;
                }
                Ok(false) | Err(_) => {}
            }
        }
    }

    fn renew(&self, store: &dyn Store) -> Result<()> {
        let (job, items) = self.crew.leases();
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
        for fence in lost {
            self.crew.lose(fence);
        }
        if let Some(lease) = job.filter(|_| lost_job) {
            self.crew.fail(Error::WorkLost { what: lease.resource.to_string() });
        }
        Ok(())
    }
}
