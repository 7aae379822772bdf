//! Jobs: one command over many items. Each item is an attempt under its own lease.
//!
//! Guaranteed: an item's attempt is recorded before its process exists, and its outcome is written under its fence, so
//! an item succeeds at most once, no matter which process dies; no process of an item outlives its attempt (R2); nothing
//! starts while the exclusive lock exists; when [`run`] returns, nothing runs, and nothing is held unless the store does not
//! answer. A store that does not answer neither ends the job nor loses an outcome (F6). Not guaranteed: that a finished item
//! is never run again. If this process is killed just after an item has finished, its success may be neither written nor
//! kept.

mod attempt;
mod control;
mod fill;
mod renew_job;
pub mod source;
mod worker;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fd::AsFd;
use tenure_core::holder::Caller;
use tenure_core::job::Job;
use tenure_core::lease::{EndReason, Lease};
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, Result, kernel};
use tenure_lock::BootTime;

use crate::execution::Execution;
use crate::heartbeat::{Heartbeat, OpenStore};
use crate::outage::{Outage, RETRY, is_outage};
use crate::supervise::Signals;
use crate::sys::local_pair;
use crate::wait::until_any;
use control::JobControl;

pub use fill::fill;

/// What a job needs from the program that contains it.
pub trait JobCallbacks: Sync {
    /// The command line of an item, as a command that passes the exec gate. Its environment is set, its input is not.
    fn command(&self, words: &[String]) -> Result<Command>;
    /// Shows a message while the job runs.
    fn show(&self, line: &str);
}

#[derive(Debug, Clone, Copy)]
pub struct JobTiming {
    /// How long the leases of the job and its items last without a heartbeat.
    pub ttl: Duration,
    pub heartbeat: Duration,
    pub grace: Duration,
    pub poll: Duration,
    /// How often the progress is reported.
    pub report: Duration,
}

/// What a process needs to work on a job.
pub struct JobContext<'a> {
    pub store: &'a dyn Store,
    pub exec: Execution<'a>,
    /// Opens the handle of a worker, which waits longer for the store than a heartbeat.
    pub open_worker_store: OpenStore<'a>,
    /// A time before the first lease of this job was requested.
    pub since: BootTime,
    pub caller: &'a Caller,
    pub signals: &'a dyn Signals,
    /// The project's root.
    pub root: &'a Path,
    pub timing: JobTiming,
    pub callbacks: &'a dyn JobCallbacks,
}

impl std::fmt::Debug for JobContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobContext").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The job, and the role of this process in it.
#[derive(Debug, Clone)]
pub struct JobWork<'a> {
    pub job: &'a Job,
    /// The lease of the job, held by its coordinator, which stays until the job has ended. A worker has none and stops
    /// when no item is left to take.
    pub held: Option<&'a Lease>,
    pub parallel: u32,
}

/// The result of working on a job.
#[derive(Debug, Clone)]
pub struct JobSummary {
    pub job: Job,
    /// The signal that stopped the job.
    pub stopped_by: Option<i32>,
}

/// Works through the job. `progress` is called from time to time with its current state.
pub fn run(cx: &JobContext<'_>, work: &JobWork<'_>, progress: &mut dyn FnMut(&Job)) -> Result<JobSummary> {
    let broken = |e: std::io::Error| Error::General(format!("the job cannot be worked on: {e}"));
    let (workers_gone, worker_end) = local_pair().map_err(broken)?;
    let control = JobControl::new(work.held.cloned()).map_err(broken)?;
    let say = |line: &str| cx.callbacks.show(line);
    let outage = Outage::new(&say);
    let shared = worker::Worker {
        exec: cx.exec,
        open_store: cx.open_worker_store,
        caller: cx.caller,
        root: cx.root,
        timing: cx.timing,
        callbacks: cx.callbacks,
        control: &control,
        work,
        outage: &outage,
    };
    let mut stopped_by = None;
    std::thread::scope(|scope| -> Result<()> {
        let (stop, stopped) = local_pair().map_err(broken)?;
        let (open, database, asked) = (cx.exec.open_store, cx.exec.database, cx.since);
        let (interval, ttl) = (cx.timing.heartbeat, cx.timing.ttl);
        let doorbell = cx.exec.doorbell.map(|bell| bell.fd);
        let renew = renew_job::RenewJob { ctx: cx.exec.ctx, control: &control };
        let beating = move || {
            let stop = Some(stopped.as_fd());
            let heartbeat = Heartbeat { open, database, interval, ttl, stop, doorbell };
            renew_job::renew_until_stopped(heartbeat, asked, renew);
        };
        let spawned = std::thread::Builder::new().name("job-heartbeat".into()).spawn_scoped(scope, beating);
        let mut spawned = spawned.map(drop);
        for number in 0..work.parallel.max(1) {
            let Ok(end) = worker_end.try_clone() else { continue };
            let shared = &shared;
            let worker = std::thread::Builder::new().name(format!("item-{number}"));
            let begun = worker.spawn_scoped(scope, move || {
                shared.work_through();
                // Closes this worker's end of the stream. The loop below ends once all workers have closed
                // theirs.
                drop(end);
            });
            spawned = spawned.and(begun.map(drop));
        }
        drop(worker_end);
        if let Err(error) = spawned {
            control.fail(broken(error));
        }
        loop {
            let woken = until_any(&[workers_gone.as_fd(), cx.signals.fd()], cx.timing.report);
            if let Some(signal) = cx.signals.take()
                && stopped_by.is_none()
            {
                stopped_by = Some(signal);
                control.stop(signal);
            }
            if let Ok(Some(job)) = cx.store.read(|view| view.job(&work.job.id)) {
                progress(&job);
            }
            if woken.first() == Some(&true) {
                break;
            }
        }
        drop(stop);
        Ok(())
    })?;
    let failed = control.into_failure();
    let job = loop {
        match release_job(cx, work) {
            Err(error) if is_outage(&error) && failed.is_none() => {
                outage.began(&error);
                // A job that was stopped does not wait for the store. Its leases end by themselves.
                if stopped_by.is_none() {
                    until_any(&[cx.signals.fd()], RETRY);
                    stopped_by = cx.signals.take();
                } else {
                    break Ok(work.job.clone());
                }
            }
            job => break job,
        }
    };
    match failed {
        Some(error) => Err(error),
        None => Ok(JobSummary { job: job?, stopped_by }),
    }
}

fn release_job(cx: &JobContext<'_>, work: &JobWork<'_>) -> Result<Job> {
    let id = &work.job.id;
    cx.store.write(Durability::Power, |tx| {
        if let Some(lease) = work.held {
            kernel::release_resource(tx, &cx.exec.ctx, lease, EndReason::Released)?;
        }
        tx.job(id)?.ok_or_else(|| Error::JobNotFound { reference: id.clone() })
    })
}
