//! A process that works on a job: its identity, signals and doorbell, and how it runs items.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use tenure_core::config::Config;
use tenure_core::holder::{Caller, Holder};
use tenure_core::job::Job;
use tenure_core::kernel::Terms;
use tenure_core::lease::Lease;
use tenure_core::{Error, ErrorCode};
use tenure_lock::BootTime;
use tenure_runner::jobs::{self, JobCallbacks, JobContext, JobSummary, JobTiming, JobWork};

use super::progress::Progress;
use crate::app::{App, Open};
use crate::commands::start_attempt;
use crate::env::Env;
use crate::execution::Surroundings;
use crate::interrupt::Interrupts;
use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};
use crate::store::Backend;

/// A process that works on a job, as its coordinator or as a worker.
pub(super) struct JobProcess {
    pub(super) caller: Caller,
    pub(super) interrupts: Interrupts,
    surroundings: Surroundings,
    /// The time before any lease was requested.
    since: BootTime,
}

impl JobProcess {
    /// Must be created before any lease is acquired, so that no signal is missed while one is held.
    pub(super) fn new(app: &App<'_>, open: &Open<'_>) -> CommandResult<Self> {
        let surroundings = Surroundings::new(open)?;
        // Each process gets a new name, so that two processes of one user are two workers.
        let holder = Holder::runner(app.env.ids.uuid());
        Ok(Self {
            caller: Caller::new(holder).with_process(surroundings.me.clone()),
            interrupts: Interrupts::listen().map_err(Report::from)?,
            surroundings,
            since: BootTime::now(),
        })
    }

    pub(super) fn terms(&self, open: &Open<'_>) -> Terms {
        let mut terms = Terms::new(open.config.runners.stale_timeout);
        terms.doorbell = self.surroundings.doorbell_address();
        terms
    }

    /// Runs items until none is left to take. `held` is the job's lease if this process is its coordinator.
    pub(super) fn work(
        &self,
        app: &mut App<'_>,
        open: &Open<'_>,
        job: &Job,
        held: Option<&Lease>,
        parallel: u32,
    ) -> CommandResult<JobSummary> {
        let workdir = PathBuf::from(&job.definition.workdir);
        if !workdir.is_dir() {
            let message = format!("the folder of job {} no longer exists: {}", job.name, workdir.display());
            return Err(Report::new(ErrorCode::General, message));
        }
        let source = &open.source;
        let another = || source.open().map(Backend::boxed);
        let runners = &open.config.runners;
        let for_heartbeat = || source.open_for_beats(runners.stale_timeout);
        let program = JobHost {
            env: app.env,
            paths: &open.paths,
            config: &open.config,
            workdir,
            lines: Mutex::new(Vec::new()),
        };
        let mut progress = Progress::begin(app, job, parallel, held.is_some());
        let cx = JobContext {
            store: open.store.as_ref(),
            exec: self.surroundings.execution(open, &for_heartbeat),
            open_worker_store: &another,
            since: self.since,
            caller: &self.caller,
            signals: &self.interrupts,
            root: &open.paths.root,
            timing: JobTiming {
                ttl: runners.stale_timeout,
                heartbeat: runners.heartbeat_interval,
                grace: runners.kill_grace,
                poll: open.config.locking.poll_interval,
                report: if progress.is_live() { Duration::from_millis(200) } else { Duration::from_secs(1) },
            },
            callbacks: &program,
        };
        let work = JobWork { job, held, parallel };
        let printer = &mut app.printer;
        let ran = jobs::run(&cx, &work, &mut |job| {
            for line in program.take_lines() {
                progress.say(printer, &line);
            }
            progress.update(printer, job);
        });
        progress.end(&mut app.printer);
        Ok(ran?)
    }
}

/// Starts the commands of items and collects their log lines.
struct JobHost<'a> {
    env: &'a Env,
    paths: &'a ProjectPaths,
    config: &'a Config,
    workdir: PathBuf,
    /// Lines of the worker threads. Only the main thread prints.
    lines: Mutex<Vec<String>>,
}

impl JobHost<'_> {
    fn take_lines(&self) -> Vec<String> {
        self.lines.lock().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
    }
}

impl JobCallbacks for JobHost<'_> {
    fn command(&self, words: &[String]) -> tenure_core::Result<Command> {
        let own =
            crate::own_binary().map_err(|e| Error::General(format!("cannot find the tenure binary: {e}")))?;
        let mut command = Command::new(own);
        command.arg("start-attempt").arg("--").args(words);
        command.env_clear().envs(&self.env.vars).current_dir(&self.workdir);
        start_attempt::pass_store(&mut command, self.paths, self.config);
        command.env("TENURE_PROJECT", &self.paths.root).env_remove("TENURE_JSON");
        Ok(command)
    }

    fn show(&self, line: &str) {
        if let Ok(mut lines) = self.lines.lock() {
            lines.push(line.to_owned());
        }
    }
}
