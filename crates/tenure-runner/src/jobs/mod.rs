//! Jobs: one command over many items, each an attempt under a lease of its own.
//!
//! Guaranteed: an item's attempt is recorded before its process exists, and its outcome is written under its fence, so
//! it has one success whoever dies when; no process of an item outlives its attempt (R2); nothing is started while the
//! exclusive lock is there; when [`run`] returns, nothing is held any more and nothing runs.
//! Not guaranteed: that an item whose process had done its work, but whose success was not yet written, is not run again.

mod attempt;
mod crew;
mod fill;
mod renew_job;
pub mod source;
mod worker;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tenure_core::holder::{Caller, Incarnation};
use tenure_core::job::Job;
use tenure_core::lease::{EndReason, Lease};
use tenure_core::store::{Durability, Store};
use tenure_core::{Clock, Context, Error, Result, kernel};
use tenure_lock::BootTime;

use crate::daemon::Bell;
use crate::database::DatabaseFile;
use crate::heartbeat::{Heartbeat, OpenStore};
use crate::supervise::Signals;
use crate::wait::until_any;
use crew::Crew;

pub use fill::fill;

/// What the program around a job does for it.
pub trait Outside: Sync {
    /// These words as a command that passes the exec gate, with its environment but no input yet.
    fn command(&self, words: &[String]) -> Result<Command>;
    /// Something to know while it runs.
    fn say(&self, line: &str);
}

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long the job and its items are held without a heartbeat.
    pub ttl: Duration,
    pub heartbeat: Duration,
    pub grace: Duration,
    pub poll: Duration,
    /// How often the progress is told.
    pub tell: Duration,
}

/// Where a job is worked on, and by whom.
pub struct Site<'a> {
    pub store: &'a dyn Store,
    /// For the workers, each of which has a handle of its own.
    pub open: OpenStore<'a>,
    /// For the heartbeat: a handle that does not wait long for a store that is away.
    pub open_heartbeat: OpenStore<'a>,
    /// No lease of this job was asked for before this moment.
    pub since: BootTime,
    pub ctx: Context<'a>,
    pub clock: &'a (dyn Clock + 'a),
    pub me: &'a Incarnation,
    pub caller: &'a Caller,
    pub signals: &'a dyn Signals,
    pub doorbell: Option<Bell<'a>>,
    /// Where the store is a file, that file.
    pub database: Option<&'a DatabaseFile>,
    /// The project's root.
    pub root: &'a Path,
    pub timing: Timing,
    pub outside: &'a dyn Outside,
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("root", &self.root).finish_non_exhaustive()
    }
}

/// What is to be worked on.
#[derive(Debug, Clone)]
pub struct Work<'a> {
    pub job: &'a Job,
    /// Whoever coordinates the job holds it, and stays until it is over. A worker goes when nothing is left to take.
    pub held: Option<&'a Lease>,
    pub parallel: u32,
}

/// How it went.
#[derive(Debug, Clone)]
pub struct Summary {
    pub job: Job,
    /// The signal that stopped it.
    pub stopped_by: Option<i32>,
}

/// Works through the job. `progress` is told how it stands, now and then.
pub fn run(site: &Site<'_>, work: &Work<'_>, progress: &mut dyn FnMut(&Job)) -> Result<Summary> {
    let broken = |e: std::io::Error| Error::General(format!("the job cannot be worked on: {e}"));
    let (news, tell) = UnixStream::pair().map_err(broken)?;
    let crew = Crew::new(work.held.cloned()).map_err(broken)?;
    let shared = worker::Shared {
        open: site.open,
        ctx: site.ctx,
        clock: site.clock,
        me: site.me,
        caller: site.caller,
        doorbell: site.doorbell.map(|bell| bell.address),
        database: site.database,
        root: site.root,
        timing: site.timing,
        outside: site.outside,
        crew: &crew,
        work,
    };
    let mut stopped_by = None;
    std::thread::scope(|scope| -> Result<()> {
        let (stop, stopped) = UnixStream::pair().map_err(broken)?;
        let (open, database, asked) = (site.open_heartbeat, site.database, site.since);
        let (interval, ttl) = (site.timing.heartbeat, site.timing.ttl);
        let doorbell = site.doorbell.map(|bell| bell.fd);
        let mut renew = renew_job::RenewJob { ctx: site.ctx, crew: &crew };
        let beating = move || {
            let stop = Some(stopped.as_fd());
            let heartbeat = Heartbeat { open, database, interval, ttl, stop, doorbell };
            let end = heartbeat.run(asked, &mut renew);
            renew_job::conclude(renew.crew, end);
        };
        let spawned = std::thread::Builder::new().name("job-heartbeat".into()).spawn_scoped(scope, beating);
        let mut spawned = spawned.map(drop);
        for number in 0..work.parallel.max(1) {
            let Ok(end) = tell.try_clone() else { continue };
            let shared = &shared;
            let worker = std::thread::Builder::new().name(format!("item-{number}"));
            let begun = worker.spawn_scoped(scope, move || {
                shared.work_through();
                // Hangs up, which is how it is known that the last of them is gone.
                drop(end);
            });
            spawned = spawned.and(begun.map(drop));
        }
        drop(tell);
        if let Err(error) = spawned {
            crew.fail(broken(error));
        }
        loop {
            let woken = until_any(&[news.as_fd(), site.signals.as_fd()], site.timing.tell);
            if let Some(signal) = site.signals.take()
                && stopped_by.is_none()
            {
                stopped_by = Some(signal);
                crew.stop(signal);
            }
            if let Ok(Some(job)) = site.store.read(|view| view.job(&work.job.id)) {
                progress(&job);
            }
            if woken.first() == Some(&true) {
                break;
            }
        }
        drop(stop);
        Ok(())
    })?;
    let failed = crew.into_failure();
    let job = let_go(site, work);
    match failed {
        Some(error) => Err(error),
        None => Ok(Summary { job: job?, stopped_by }),
    }
}

fn let_go(site: &Site<'_>, work: &Work<'_>) -> Result<Job> {
    let id = &work.job.id;
    site.store.write(Durability::Power, |tx| {
        if let Some(lease) = work.held {
            kernel::release_resource(tx, &site.ctx, lease, EndReason::Released)?;
        }
        tx.job(id)?.ok_or_else(|| Error::JobNotFound { reference: id.clone() })
    })
}
