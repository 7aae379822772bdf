//! The runner: claims the next ready task, runs an agent on it, and continues until nothing is left.
//!
//! Guaranteed: one runner per slot (R1), because the slot is a lease granted in the transaction that writes the
//! runner's row; a waiting runner holds no task; nothing starts while the exclusive lock exists; no task stays in
//! progress after the runner has ended: either the runner returns it, or the next reconcile does.

mod agent;
pub(crate) mod agent_output;
mod diagnosis;
pub mod log;
pub mod output;
mod parking;
mod pick_work;
mod renew_slot;
pub(crate) mod report;
pub(crate) mod resumption;
mod slot;
mod waiting;
mod work;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tenure_core::id::{SectionId, TaskId};
use tenure_core::parking::ParkingScope;
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::session::{Current, SessionOptions, SessionState};
use tenure_core::store::Store;
use tenure_core::task::Task;
use tenure_core::{Error, Result};

use crate::agents::Agent;
use crate::database::DatabaseFile;
use crate::execution::Execution;
use crate::outage::{Outage, RETRY, is_outage};
use crate::preset::{Conversation, UnusablePreset};
use crate::supervise::Signals;
use crate::wait::until_any;
use log::DaemonLog;

pub use resumption::{Beginning, ResumeReason, Resumption};

/// The configuration of one runner.
#[derive(Debug, Clone)]
pub struct RunnerOptions {
    /// The project's root, and the folder in which agents are started.
    pub root: PathBuf,
    pub workdir: PathBuf,
    pub section: Option<(SectionId, String)>,
    /// Work only on this task.
    pub task: Option<TaskId>,
    /// Stop after one task.
    pub once: bool,
    pub preset: String,
    /// The preset that reviews tasks in review, before any other work.
    pub reviewer: Option<String>,
    pub slots: u32,
    /// `None` keeps the history forever.
    pub retention: Option<Duration>,
    pub logs: LogLimits,
    pub timing: RunnerTiming,
    pub session: SessionStart,
}

impl RunnerOptions {
    /// The folder of the agents' logs.
    fn log_folder(&self) -> PathBuf {
        self.root.join(".tenure").join("logs")
    }

    /// The folder of the agents' reports.
    fn report_folder(&self) -> PathBuf {
        self.root.join(".tenure").join("attempts")
    }

    fn section_name(&self) -> Option<&str> {
        self.section.as_ref().map(|(_, name)| name.as_str())
    }
}

/// How much of the agents' logs is kept.
#[derive(Debug, Clone, Copy)]
pub struct LogLimits {
    pub age: Duration,
    /// In bytes.
    pub total: u64,
}

/// The session that this run belongs to.
#[derive(Debug, Clone)]
pub struct SessionStart {
    pub id: String,
    pub options: SessionOptions,
    /// The task at which the previous run was interrupted.
    pub interrupted: Option<Current>,
}

#[derive(Debug, Clone, Copy)]
pub struct RunnerTiming {
    /// How long the lease of a task, and of a section, lasts without a heartbeat.
    pub ttl: Duration,
    pub section_ttl: Duration,
    /// How long the slot lasts without a heartbeat.
    pub stale: Duration,
    pub heartbeat: Duration,
    pub idle: Duration,
    pub wait: Duration,
    pub poll: Duration,
    pub hang: Duration,
    pub agent: Duration,
    pub grace: Duration,
}

/// The kind of work an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Work,
    Review,
}

/// What the runner needs from the program that contains it.
pub trait RunnerCallbacks: Sync {
    /// Fails if no agent may be started any more. Called before work is picked.
    fn check(&self) -> Result<()>;
    fn preset(&self, name: &str) -> Result<AgentPreset>;
    /// Why the preset's agent cannot be started as configured; `None` if it can.
    fn unusable(&self, preset: &str) -> Option<Box<UnusablePreset>>;
    /// The agent of a preset, with the conversation that it begins or resumes, if the agent supports that. The command passes
    /// the exec gate. Its environment is set, its input is not.
    fn agent(&self, preset: &str, conversation: Option<Conversation<'_>>) -> Result<Command>;
    /// Whether the agent of a preset still has a conversation; `None` if that is not known.
    fn has_conversation(&self, preset: &str, conversation: &str) -> Option<bool>;
    fn prompt(&self, task: &Task, purpose: Purpose, beginning: &Beginning) -> Result<String>;
    /// Copies the runner's changed row to the directory. Failures are ignored.
    fn announce(&self, runner: &Runner, section: Option<&str>);
    /// Delivers an event to the hooks.
    fn notify(&self, what: RunnerEvent<'_>);
}

/// The part of a preset that the runner needs.
#[derive(Debug, Clone)]
pub struct AgentPreset {
    /// What is known about the program.
    pub agent: &'static Agent,
    /// What is parked when the agent cannot work.
    pub scope: ParkingScope,
    /// Whether a good ending without a report is not enough to complete a task.
    pub require_report: bool,
    /// Whether the name of a conversation can be chosen before the agent is started.
    pub can_begin: bool,
}

impl AgentPreset {
    /// The name to record for the agent; the account's name for an unknown program.
    fn agent_name(&self) -> &str {
        if self.agent.is_known() { self.agent.name } else { &self.scope.account }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum RunnerEvent<'a> {
    RunnerStarted(&'a Runner),
    RunnerStopped(&'a Runner),
    RunnerFailed(&'a Runner),
    TaskEnded(&'a Task),
    LeaseLost(&'a Task),
}

/// What a runner works with.
pub struct RunnerContext<'a> {
    pub store: &'a dyn Store,
    pub exec: Execution<'a>,
    pub signals: &'a dyn Signals,
    pub log: &'a DaemonLog,
    pub options: &'a RunnerOptions,
    pub callbacks: &'a dyn RunnerCallbacks,
    /// Logs the beginning and the end of an outage of the store.
    pub outage: &'a Outage<'a>,
}

impl RunnerContext<'_> {
    /// Repeats `body` while the store does not answer. Returns the signal if one arrives meanwhile.
    fn persist<T>(&self, mut body: impl FnMut() -> Result<T>) -> Result<Result<T, i32>> {
        loop {
            match body() {
                Err(error) if is_outage(&error) => {
                    if let Some(signal) = self.wait_for_store(&error)? {
                        return Ok(Err(signal));
                    }
                }
                answer => {
                    self.outage.over();
                    return answer.map(Ok);
                }
            }
        }
    }

    /// Pauses before the store is tried again. Returns the signal that ended the pause, if one did.
    fn wait_for_store(&self, error: &Error) -> Result<Option<i32>> {
        self.outage.began(error);
        if let Some(loss) = self.exec.database.and_then(DatabaseFile::loss) {
            return Err(Error::General(loss.to_string()));
        }
        until_any(&[self.signals.fd()], RETRY);
        Ok(self.signals.take())
    }
}

impl std::fmt::Debug for RunnerContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunnerContext").field("options", self.options).finish_non_exhaustive()
    }
}

/// How many tasks a runner has left in each status. A task that was attempted several times counts once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TaskCounts {
    pub completed: u32,
    pub review: u32,
    pub failed: u32,
    pub skipped: u32,
    /// The tasks that the runner has returned.
    pub pending: u32,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct RunnerSummary {
    pub runner: Runner,
    pub tasks: TaskCounts,
    /// Whether the last attempt at a task has failed.
    pub has_failures: bool,
    /// The signal that stopped the runner.
    pub stopped_by: Option<i32>,
}

/// Takes a slot, works, and releases the slot. `started` is called once the slot is taken.
pub fn run(cx: &RunnerContext<'_>, started: &mut dyn FnMut(&Runner)) -> Result<RunnerSummary> {
    let mut slot = slot::acquire(cx)?;
    started(&slot.runner);
    cx.log.line(&format!(
        "Runner {} started on {} with {}",
        slot.runner.id,
        cx.options.root.display(),
        cx.options.preset
    ));
    cx.callbacks.notify(RunnerEvent::RunnerStarted(&slot.runner));
    let worked =
        renew_slot::with_heartbeat(cx, &mut slot, |slot, heartbeat| work::run_loop(cx, slot, heartbeat));
    let (status, error) = match &worked {
        Ok(_) => (RunnerStatus::Completed, None),
        Err(error) => (RunnerStatus::Failed, Some(error.to_string())),
    };
    // A runner that was stopped leaves an interrupted session, which can be resumed.
    let session = match &worked {
        Ok(outcome) if outcome.stopped_by.is_some() => SessionState::Open,
        Ok(_) => SessionState::Completed,
        Err(_) => SessionState::Failed,
    };
    slot::release(cx, &mut slot, status, session, error.clone());
    if let Some(error) = &error {
        cx.log.line(&format!("Runner failed: {error}"));
        cx.callbacks.notify(RunnerEvent::RunnerFailed(&slot.runner));
    } else {
        cx.log.line("Runner ended");
        cx.callbacks.notify(RunnerEvent::RunnerStopped(&slot.runner));
    }
    let outcome = worked?;
    Ok(RunnerSummary {
        runner: slot.runner,
        tasks: outcome.counts(),
        has_failures: outcome.has_failures(),
        stopped_by: outcome.stopped_by,
    })
}
