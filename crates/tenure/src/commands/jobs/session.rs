//! Runs items of a job in this process: its identity, signals, doorbell and commands.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use tenure_core::holder::{Caller, Holder};
use tenure_core::job::Job;
use tenure_core::kernel::Terms;
use tenure_core::lease::Lease;
use tenure_core::{Error, ErrorCode};
use tenure_lock::BootTime;
use tenure_runner::jobs::{self, JobCallbacks, JobContext, JobSummary, JobTiming, JobWork};

use super::progress::Progress;
use crate::app::{App, Open};
use crate::env::Env;
use crate::execution::Surroundings;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::store::Backend;

pub(super) struct JobSession {
    pub(super) caller: Caller,
    pub(super) interrupts: Interrupts,
    surroundings: Surroundings,
    /// Created before anything was requested.
    since: BootTime,
}

impl JobSession {
    /// To be called before anything is held, so that no signal is missed.
    pub(super) fn new(app: &App<'_>, open: &Open<'_>) -> Outcome<Self> {
        let surroundings = Surroundings::new(open)?;
        // Two processes of one user are two workers, so each has a unique holder.
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

    /// Works through the job; `held` is its lease if this process is the coordinator.
    pub(super) fn work(
        &self,
        app: &mut App<'_>,
        open: &Open<'_>,
        job: &Job,
        held: Option<&Lease>,
        parallel: u32,
    ) -> Outcome<JobSummary> {
        let workdir = PathBuf::from(&job.definition.workdir);
        if !workdir.is_dir() {
            let message = format!("the folder of job {} is gone: {}", job.name, workdir.display());
            return Err(Report::new(ErrorCode::General, message));
        }
        let source = &open.source;
        let another = || source.open().map(Backend::boxed);
        let runners = &open.config.runners;
        let for_heartbeat = || source.open_for_beats(runners.stale_timeout);
        let program = Program {
            env: app.env,
            root: open.paths.root.clone(),
            workdir,
            messages: Mutex::new(Vec::new()),
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
            for line in program.take_messages() {
                progress.say(printer, &line);
            }
            progress.tell(printer, job);
        });
        progress.end(&mut app.printer);
        Ok(ran?)
    }
}

struct Program<'a> {
    env: &'a Env,
    root: PathBuf,
    workdir: PathBuf,
    /// Messages of the workers' threads; only the main thread prints.
    messages: Mutex<Vec<String>>,
}

impl Program<'_> {
    fn take_messages(&self) -> Vec<String> {
        self.messages.lock().map(|mut messages| std::mem::take(&mut *messages)).unwrap_or_default()
    }
}

impl JobCallbacks for Program<'_> {
    fn command(&self, words: &[String]) -> tenure_core::Result<Command> {
        let own =
            crate::own_binary().map_err(|e| Error::General(format!("cannot find the tenure binary: {e}")))?;
        let mut command = Command::new(own);
        command.arg("start-attempt").arg("--").args(words);
        command.env_clear().envs(&self.env.vars).current_dir(&self.workdir);
        command.env("TENURE_PROJECT", &self.root).env_remove("TENURE_JSON");
        Ok(command)
    }

    fn show(&self, line: &str) {
        if let Ok(mut messages) = self.messages.lock() {
            messages.push(line.to_owned());
        }
    }
}
