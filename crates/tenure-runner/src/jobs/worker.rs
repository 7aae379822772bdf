//! One worker of a job: takes the next due item, runs it, and repeats until none is left.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tenure_core::holder::Caller;
use tenure_core::kernel::{self, ItemGrant, NextItem, Terms};
use tenure_core::lease::Attempt;
use tenure_core::outcome::Nonce;
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, Result};
use tenure_lock::BootTime;

use super::control::JobControl;
use super::{JobCallbacks, JobTiming, JobWork, fill};
use crate::database::DatabaseFile;
use crate::exclusion;
use crate::execution::Execution;
use crate::heartbeat::OpenStore;
use crate::outage::{Outage, RETRY, is_outage};
use crate::reap;
use crate::wait::until_any;

/// How soon to look again while other workers have the remaining items.
const RECHECK: Duration = Duration::from_millis(200);
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// What each worker of a job works with.
pub(super) struct Worker<'a> {
    pub(super) exec: Execution<'a>,
    pub(super) open_store: OpenStore<'a>,
    pub(super) caller: &'a Caller,
    pub(super) root: &'a Path,
    pub(super) timing: JobTiming,
    pub(super) callbacks: &'a dyn JobCallbacks,
    pub(super) control: &'a JobControl,
    pub(super) work: &'a JobWork<'a>,
    pub(super) outage: &'a Outage<'a>,
}

/// A claimed item and its command.
pub(super) struct ClaimedItem {
    pub(super) grant: ItemGrant,
    /// When the claim was requested.
    pub(super) asked: BootTime,
    /// The command line, or why it cannot be built.
    pub(super) words: Result<Vec<String>, String>,
    /// None if processes of an earlier attempt must be reaped first, or there is no command.
    pub(super) attempt: Option<Attempt>,
    /// The nonce of its attempt.
    pub(super) nonce: Nonce,
}

enum NextWork {
    Item(Box<ClaimedItem>),
    Sleep(Duration),
    End,
}

impl Worker<'_> {
    pub(super) fn work_through(&self) {
        if let Err(error) = self.work() {
            self.control.fail(error);
        }
    }

    fn work(&self) -> Result<()> {
        let Some(store) = self.persist(|| (self.open_store)())? else { return Ok(()) };
        let shown = Mutex::new(String::new());
        while !self.control.is_stopping() {
            if let Some(loss) = self.exec.database.and_then(DatabaseFile::loss) {
                return Err(Error::General(loss.to_string()));
            }
            if self.is_locked_out(&shown) {
                self.sleep(self.timing.poll.min(LONGEST_SLEEP));
                continue;
            }
            match self.persist(|| self.next(store.as_ref()))? {
                Some(NextWork::Item(claimed)) => self.run_item(store.as_ref(), *claimed)?,
                Some(NextWork::Sleep(nap)) => self.sleep(nap),
                Some(NextWork::End) | None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Repeats `body` while the store does not answer; None if the job is stopped meanwhile.
    pub(super) fn persist<T>(&self, mut body: impl FnMut() -> Result<T>) -> Result<Option<T>> {
        loop {
            match body() {
                Err(error) if is_outage(&error) => {
                    self.outage.began(&error);
                    if let Some(loss) = self.exec.database.and_then(DatabaseFile::loss) {
                        return Err(Error::General(loss.to_string()));
                    }
                    self.sleep(RETRY);
                    if self.control.is_stopping() {
                        return Ok(None);
                    }
                }
                answer => {
                    self.outage.over();
                    return answer.map(Some);
                }
            }
        }
    }

    fn next(&self, store: &dyn Store) -> Result<NextWork> {
        let mut terms = Terms::new(self.timing.ttl);
        terms.doorbell = self.exec.doorbell.map(|bell| bell.address.to_owned());
        let job = self.work.job;
        let asked = BootTime::now();
        let nonce = Nonce::new(self.exec.ctx.ids);
        let next = store.write(Durability::Power, |tx| {
            let next = kernel::take_item(tx, &self.exec.ctx, self.caller, &job.id, &terms)?;
            let NextItem::Granted(grant) = next else { return Ok(Err(next)) };
            let words = fill(&job.definition.command, &grant.item.payload);
            let free = words.is_ok() && !reap::is_in_the_way(tx, &self.exec.ctx, &grant.lease.resource, &[])?;
            let attempt = if free { Some(self.begin(tx, &grant, &nonce)?) } else { None };
            Ok(Ok(ClaimedItem { grant: *grant, asked, words, attempt, nonce: nonce.clone() }))
        })?;
        Ok(match next {
            Ok(claimed) => NextWork::Item(Box::new(claimed)),
            Err(NextItem::Later(due)) => {
                let wait = due.since(self.exec.clock.now()) + Duration::from_millis(1);
                NextWork::Sleep(wait.min(LONGEST_SLEEP))
            }
            Err(NextItem::Busy) if self.work.held.is_some() => NextWork::Sleep(RECHECK),
            Err(_) => NextWork::End,
        })
    }

    /// Sleeps, unless the job is stopped.
    pub(super) fn sleep(&self, nap: Duration) {
        until_any(&[self.control.stopped()], nap);
    }

    /// Shows each reason once.
    fn is_locked_out(&self, shown: &Mutex<String>) -> bool {
        let decisions = exclusion::check(self.root);
        for line in decisions.iter().map(ToString::to_string) {
            if let Ok(mut shown) = shown.lock()
                && *shown != line
            {
                self.callbacks.show(&line);
                *shown = line;
            }
        }
        let locked = decisions.iter().any(|decision| decision.skip);
        if !locked && let Ok(mut shown) = shown.lock() {
            shown.clear();
        }
        locked
    }
}
