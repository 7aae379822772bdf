//! The outcome of a hook.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::config::HookEvent;
use tenure_core::duration::format_short;
use tenure_core::wire::millis;

use super::fill::FillError;
use crate::program::ProgramError;

#[derive(Debug, Clone)]
pub struct Outcome {
    pub hook: String,
    pub event: HookEvent,
    /// The task's key, if the event concerns a task.
    pub task: Option<String>,
    pub result: HookResult,
    /// The quoted line of the script's or server's output, without values of variables.
    pub said: Option<String>,
    pub tries: u32,
    pub took: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookResult {
    Succeeded,
    /// The hook runs in a helper process, which logs the outcome.
    HandedOver,
    Failed(Failure),
}

/// Why a hook failed. Contains no value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    #[error(transparent)]
    Template(#[from] FillError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("it could not be started: {0}")]
    NotStarted(String),
    #[error("it exited with {0}")]
    Exit(i32),
    #[error("it was killed by signal {0}")]
    Signal(i32),
    #[error("it took longer than {}", format_short(*.0))]
    TimedOut(Duration),
    #[error("the server answered {0}")]
    Status(u16),
    #[error("the request is not possible: {0}")]
    Request(String),
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
    #[error("it was interrupted")]
    Stopped,
    #[error("it could not be handed over: {0}")]
    NotHandedOver(String),
}

impl Failure {
    /// Whether another try may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Exit(_) | Self::Signal(_) | Self::TimedOut(_) | Self::Unreachable(_) => true,
            Self::Status(status) => *status >= 500 || matches!(status, 408 | 425 | 429),
            _ => false,
        }
    }
}

impl Outcome {
    pub fn failure(&self) -> Option<&Failure> {
        match &self.result {
            HookResult::Failed(failure) => Some(failure),
            HookResult::Succeeded | HookResult::HandedOver => None,
        }
    }

    pub const fn word(&self) -> &'static str {
        match self.result {
            HookResult::Succeeded => "succeeded",
            HookResult::HandedOver => "handed over",
            HookResult::Failed(_) => "failed",
        }
    }

    /// One line for a log or a warning, if the hook failed.
    pub fn warning(&self) -> Option<String> {
        let failure = self.failure()?;
        let tries = if self.tries > 1 { format!(" (tried {} times)", self.tries) } else { String::new() };
        let said = self.said.as_ref().map(|said| format!("; it said: {said}")).unwrap_or_default();
        Some(format!("hook {} on {} failed: {failure}{tries}{said}", self.hook, self.event))
    }

    pub fn to_json(&self) -> Value {
        json!({
            "hook": self.hook,
            "event": self.event.as_str(),
            "task": self.task,
            "outcome": self.word(),
            "error": self.failure().map(ToString::to_string),
            "said": self.said,
            "tries": self.tries,
            "tookMs": millis(self.took),
        })
    }
}
