//! One worker of a job: takes the next item that is due, has it run, and again until nothing is left.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel::{self, ItemGrant, NextItem, Terms};
use tenure_core::lease::Attempt;
use tenure_core::store::{Durability, Store};
use tenure_core::{Clock, Context, Error, Result};
use tenure_lock::BootTime;

use super::crew::Crew;
use super::{Outside, Timing, Work, fill};
use crate::database::DatabaseFile;
use crate::ending;
use crate::exclusion;
use crate::heartbeat::OpenStore;
use crate::wait::until_any;

/// How long others are left alone with the rest before it is looked at again.
const GLANCE: Duration = Duration::from_millis(200);
const NAP: Duration = Duration::from_secs(1);
/// How long a store that does not answer is asked again.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What every worker of a job works with.
pub(super) struct Shared<'a> {
    pub(super) open: OpenStore<'a>,
    pub(super) ctx: Context<'a>,
    pub(super) clock: &'a (dyn Clock + 'a),
    pub(super) me: &'a Incarnation,
    pub(super) caller: &'a Caller,
    pub(super) doorbell: Option<&'a str>,
    pub(super) database: Option<&'a DatabaseFile>,
    pub(super) root: &'a Path,
    pub(super) timing: Timing,
    pub(super) outside: &'a dyn Outside,
    pub(super) crew: &'a Crew,
    pub(super) work: &'a Work<'a>,
}

/// An item with what is to be run for it.
pub(super) struct Taken {
    pub(super) grant: ItemGrant,
    /// When it was asked for.
    pub(super) asked: BootTime,
    /// The words of its command, or why there can be none.
    pub(super) words: Result<Vec<String>, String>,
    /// None while something of an earlier attempt is in the way, or there is nothing to run.
    pub(super) attempt: Option<Attempt>,
}

enum Next {
    Item(Box<Taken>),
    Nap(Duration),
    End,
}

impl Shared<'_> {
    pub(super) fn work_through(&self) {
        if let Err(error) = self.work() {
            self.crew.fail(error);
        }
    }

    fn work(&self) -> Result<()> {
        let store = (self.open)()?;
        let said = Mutex::new(String::new());
        let mut unanswered: Option<Instant> = None;
        while !self.crew.is_stopping() {
            if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
                return Err(Error::General(loss.to_string()));
            }
            if self.is_locked_out(&said) {
                self.nap(self.timing.poll.min(NAP));
                continue;
            }
            match self.next(store.as_ref()) {
                Ok(Next::Item(taken)) => self.run_item(store.as_ref(), *taken)?,
                Ok(Next::Nap(nap)) => self.nap(nap),
                Ok(Next::End) => return Ok(()),
                Err(error @ Error::Store { .. }) => {
                    if unanswered.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return Err(error);
                    }
                    self.nap(GLANCE);
                    continue;
                }
                Err(error) => return Err(error),
            }
            unanswered = None;
        }
        Ok(())
    }

    fn next(&self, store: &dyn Store) -> Result<Next> {
        let mut terms = Terms::new(self.timing.ttl);
        terms.doorbell = self.doorbell.map(str::to_owned);
        let job = self.work.job;
        let asked = BootTime::now();
        let next = store.write(Durability::Power, |tx| {
            let next = kernel::take_item(tx, &self.ctx, self.caller, &job.id, &terms)?;
            let NextItem::Granted(grant) = next else { return Ok(Err(next)) };
            let words = fill(&job.definition.command, &grant.item.payload);
            let free = words.is_ok() && !ending::is_in_the_way(tx, &self.ctx, &grant.lease.resource, &[])?;
            let attempt = if free { Some(self.begin(tx, &grant)?) } else { None };
            Ok(Ok(Taken { grant: *grant, asked, words, attempt }))
        })?;
        Ok(match next {
            Ok(taken) => Next::Item(Box::new(taken)),
            Err(NextItem::Later(due)) => {
                let wait = due.since(self.clock.now()) + Duration::from_millis(1);
                Next::Nap(wait.min(NAP))
            }
            Err(NextItem::Busy) if self.work.held.is_some() => Next::Nap(GLANCE),
            Err(_) => Next::End,
        })
    }

    /// Sleeps, unless all are told to stop.
    pub(super) fn nap(&self, nap: Duration) {
        until_any(&[self.crew.stopped()], nap);
    }

    /// Said once for each reason, by whoever sees it first.
    fn is_locked_out(&self, said: &Mutex<String>) -> bool {
        let decisions = exclusion::check(self.root);
        for line in decisions.iter().map(ToString::to_string) {
            if let Ok(mut said) = said.lock()
                && *said != line
            {
                self.outside.say(&line);
                *said = line;
            }
        }
        let locked = decisions.iter().any(|decision| decision.skip);
        if !locked && let Ok(mut said) = said.lock() {
            said.clear();
        }
        locked
    }
}
