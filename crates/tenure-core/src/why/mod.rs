//! Why a task or a project makes no progress, in sentences with the command that helps.
//!
//! An explanation only reads rows. What is not in the store (the exclusive lock, timers, configuration) comes from
//! [`Asking`].

mod project;
mod task;
mod words;

pub use project::about_project;
pub use task::about_task;
pub use words::{holder, remaining, resource_name};

use crate::clock::Timestamp;
use crate::context::Context;
use crate::error::{QueuedWaiter, Result, TaskName};
use crate::hints::{self, Hint};
use crate::holder::{Caller, Holder, Liveness};
use crate::parking::Parking;
use crate::store::{View, Viewer};

/// One reason why there is no progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// A stable word: `held`, `blocked`, `no_runner` and so on.
    pub kind: &'static str,
    pub sentence: String,
    pub hint: Option<Hint>,
    /// The first waiter, if a queue is in the way.
    pub first: Option<QueuedWaiter>,
}

impl Reason {
    pub fn new(kind: &'static str, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), hint: None, first: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Whether work continues, or will continue, although there is this reason.
    pub fn is_progress(&self) -> bool {
        matches!(self.kind, "ready" | "reserved" | "held" | "finished" | "no_runner" | "no_timer")
    }
}

/// The caller of an explanation, and what it knows besides the rows.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub ctx: &'a Context<'a>,
    /// The holder that asks, if it has a name.
    pub me: Option<&'a Holder>,
    /// The caller of a claim of a task.
    pub claimant: &'a dyn Fn(&TaskName) -> Caller,
    /// A time as the reader sees it.
    pub time: &'a dyn Fn(Timestamp) -> String,
    /// The exclusive lock, if there is one.
    pub exclusive: Option<&'a Reason>,
    /// What helps against something parked, if that is known.
    pub remedy: &'a dyn Fn(&Parking) -> Option<Hint>,
    /// Why no runner is started automatically.
    pub no_runner: &'a dyn Fn() -> Option<Reason>,
}

impl std::fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("me", &self.me).finish_non_exhaustive()
    }
}

impl Asking<'_> {
    fn viewer(&self, view: &dyn View) -> Result<Viewer> {
        self.ctx.viewer(view, self.me)
    }

    /// Adds the reasons that do not depend on one task: the exclusive lock, what is parked, missing runners.
    fn complete(&self, view: &dyn View, mut reasons: Vec<Reason>) -> Result<Vec<Reason>> {
        // Under an exclusive lock no runner can be started.
        if self.exclusive.is_none() && reasons.iter().any(|r| r.kind == "ready" || r.kind == "review") {
            reasons.extend(self.why_not_claimed(view)?);
        }
        if reasons.iter().any(|r| r.kind == "no_runner") {
            reasons.extend((self.no_runner)());
        }
        if let Some(exclusive) = self.exclusive {
            reasons.insert(0, exclusive.clone());
        }
        Ok(reasons)
    }

    /// Why a ready task is not claimed by a runner.
    fn why_not_claimed(&self, view: &dyn View) -> Result<Vec<Reason>> {
        let mut reasons: Vec<Reason> = Vec::new();
        for parking in view.parked()? {
            let remedy = (self.remedy)(&parking);
            reasons.push(Reason {
                hint: Some(remedy.unwrap_or_else(hints::probe_parked)),
                ..Reason::new("parked", format!("{}.", parking.sentence(view.now())))
            });
        }
        let is_dead = |process| self.ctx.judge.liveness(process) == Liveness::Dead;
        if reasons.is_empty() && view.runners(0)?.iter().all(|runner| is_dead(&runner.process)) {
            reasons.push(
                Reason::new("no_runner", "No runner is running in this project.").hint(hints::start_runner()),
            );
        }
        Ok(reasons)
    }
}
