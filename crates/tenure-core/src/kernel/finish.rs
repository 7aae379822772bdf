//! A holder's word on its task: what it says, where that leads, and whether it was said before.

use crate::context::Context;
use crate::lease::{EndReason, Lease};
use crate::task::{Task, TaskStatus};

/// What the holder says about its task.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a> {
    Done,
    /// Leave it to a reviewer, whatever the policy.
    Review,
    Fail(&'a str),
    /// What was given for review does not do, and why. From anybody else this is a failure.
    Reject(&'a str),
    Release(Option<&'a str>),
}

impl Finish<'_> {
    pub(super) fn end_reason(self) -> EndReason {
        match self {
            Self::Release(_) => EndReason::Released,
            _ => EndReason::Completed,
        }
    }

    pub(super) fn rejects(self, lease: &Lease) -> bool {
        matches!(self, Self::Reject(_)) && lease.claimed_from == Some(TaskStatus::Review)
    }

    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Fail(text) | Self::Reject(text) => Some(text),
            Self::Release(text) => *text,
            Self::Done | Self::Review => None,
        }
    }

    pub(super) fn target(self, ctx: &Context<'_>, lease: &Lease, task: &Task) -> TaskStatus {
        match self {
            // Whoever was given a task to review and says "done" has approved it.
            Self::Done if ctx.policy.review && lease.claimed_from != Some(TaskStatus::Review) => {
                TaskStatus::Review
            }
            Self::Done => TaskStatus::Completed,
            Self::Review => TaskStatus::Review,
            Self::Reject(_)
                if self.rejects(lease) && task.rejections.saturating_add(1) < ctx.policy.max_rejections =>
            {
                TaskStatus::Pending
            }
            Self::Fail(_) | Self::Reject(_) => TaskStatus::Failed,
            Self::Release(_) => lease.claimed_from.unwrap_or(TaskStatus::Pending),
        }
    }

    /// Is this what a task of that status says, as after a reply that got lost?
    pub(super) fn already(self, lease: &Lease, status: TaskStatus) -> bool {
        match self {
            Self::Done => matches!(status, TaskStatus::Completed | TaskStatus::Review),
            Self::Review => status == TaskStatus::Review,
            Self::Fail(_) => status == TaskStatus::Failed,
            Self::Reject(_) => matches!(status, TaskStatus::Pending | TaskStatus::Failed),
            Self::Release(_) => Some(status) == lease.claimed_from,
        }
    }
}
