//! The runner: takes the next ready task, has an agent work on it, and goes on until nothing is left.
//!
//! Guaranteed: one runner per place (R1), because the place is a lease granted with the runner's own row; it holds no task
//! while it waits for one; it starts nothing while the exclusive lock is there; however it ends, no task stays in progress
//! behind it, if not by itself then by the next reconcile.

mod agent;
mod conversation;
pub(crate) mod listening;
pub mod log;
mod look;
pub mod output;
mod parking;
mod place;
mod renew_slot;
mod waiting;
mod work;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tenure_core::holder::Incarnation;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::session::{Current, SessionOptions, SessionState};
use tenure_core::store::Store;
use tenure_core::task::Task;
use tenure_core::{Clock, Context, Result};

use crate::agents::AgentKind;
use crate::database::DatabaseFile;
use crate::heartbeat::OpenStore;
use crate::supervise::Signals;
use log::DaemonLog;

pub use parking::unpark;

/// What a runner was told to do.
#[derive(Debug, Clone)]
pub struct Orders {
    /// The project's root, and where the agent is started.
    pub root: PathBuf,
    pub workdir: PathBuf,
    pub section: Option<(SectionId, String)>,
    /// Only this task.
    pub task: Option<TaskId>,
    /// One task, then stop.
    pub once: bool,
    pub preset: String,
    /// A second agent looks at what is in review, before anything else.
    pub reviewer: Option<String>,
    pub places: u32,
    pub timing: Timing,
    pub session: SessionOrders,
}

impl Orders {
    fn section_name(&self) -> Option<&str> {
        self.section.as_ref().map(|(_, name)| name.as_str())
    }
}

/// Which session this run is a part of.
#[derive(Debug, Clone)]
pub struct SessionOrders {
    pub id: String,
    pub options: SessionOptions,
    /// Where the run before was interrupted.
    pub interrupted: Option<Current>,
}

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a task is held without a heartbeat, and a section.
    pub ttl: Duration,
    pub section_ttl: Duration,
    /// How long the place is held without a heartbeat.
    pub stale: Duration,
    pub heartbeat: Duration,
    pub idle: Duration,
    pub wait: Duration,
    pub poll: Duration,
    pub hang: Duration,
    pub agent: Duration,
    pub grace: Duration,
}

/// What an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Work,
    Review,
}

/// What the program around the runner does for it.
pub trait Outside: Sync {
    /// The agent of that preset. With the name of a conversation it continues that one, if its program can.
    fn agent(&self, preset: &str, conversation: Option<&str>) -> Result<AgentStart>;
    fn prompt(&self, task: &Task, purpose: Purpose) -> Result<String>;
    /// The runner's row has changed: the directory wants to know. Never in the way.
    fn announce(&self, runner: &Runner, section: Option<&str>);
    /// Something that hooks may want to know.
    fn happened(&self, what: Happening<'_>);
}

/// An agent that is about to be started.
#[derive(Debug)]
pub struct AgentStart {
    /// Passes the exec gate; has its environment, but no input yet.
    pub command: Command,
    /// The program, if its output is understood.
    pub kind: Option<AgentKind>,
}

#[derive(Debug, Clone, Copy)]
pub enum Happening<'a> {
    RunnerStarted(&'a Runner),
    RunnerStopped(&'a Runner),
    RunnerFailed(&'a Runner),
    TaskEnded(&'a Task),
    LeaseLost(&'a Task),
}

/// Where a runner works.
pub struct Site<'a> {
    pub store: &'a dyn Store,
    /// For the heartbeats, which have handles of their own.
    pub open: OpenStore<'a>,
    pub ctx: Context<'a>,
    pub clock: &'a dyn Clock,
    pub me: &'a Incarnation,
    pub signals: &'a dyn Signals,
    pub doorbell: Option<Bell<'a>>,
    /// Where the store is a file, that file.
    pub database: Option<&'a DatabaseFile>,
    pub log: &'a DaemonLog,
    pub orders: &'a Orders,
    pub outside: &'a dyn Outside,
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("orders", self.orders).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Bell<'a> {
    pub address: &'a str,
    pub fd: BorrowedFd<'a>,
}

/// How a run went.
#[derive(Debug, Clone)]
pub struct Summary {
    pub runner: Runner,
    pub completed: u32,
    pub failed: u32,
    /// The signal that stopped it.
    pub stopped_by: Option<i32>,
}

/// Registers, works, and says goodbye. `started` is called once the place is taken.
pub fn run(site: &Site<'_>, started: &mut dyn FnMut(&Runner)) -> Result<Summary> {
    let mut seat = place::take(site)?;
    started(&seat.runner);
    site.log.line(&format!(
        "Runner {} started on {} with {}",
        seat.runner.id,
        site.orders.root.display(),
        site.orders.preset
    ));
    site.outside.happened(Happening::RunnerStarted(&seat.runner));
    let worked = renew_slot::beside(site, &mut seat, |seat, heartbeat| work::through(site, seat, heartbeat));
    let (status, error) = match &worked {
        Ok(_) => (RunnerStatus::Completed, None),
        Err(error) => (RunnerStatus::Failed, Some(error.to_string())),
    };
    // Stopped on purpose it is interrupted, and can be resumed.
    let session = match &worked {
        Ok(tally) if tally.stopped_by.is_some() => SessionState::Open,
        Ok(_) => SessionState::Completed,
        Err(_) => SessionState::Failed,
    };
    place::give_up(site, &mut seat, status, session, error.clone());
    if let Some(error) = &error {
        site.log.line(&format!("Runner failed: {error}"));
        site.outside.happened(Happening::RunnerFailed(&seat.runner));
    } else {
        site.log.line("Runner ended");
        site.outside.happened(Happening::RunnerStopped(&seat.runner));
    }
    let tally = worked?;
    Ok(Summary {
        runner: seat.runner,
        completed: tally.completed,
        failed: tally.failed,
        stopped_by: tally.stopped_by,
    })
}
