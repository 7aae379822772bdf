//! A holder's report on its task: the status it leads to, and whether it was made before.

use crate::context::Context;
use crate::lease::{EndReason, Lease};
use crate::task::{Task, TaskStatus};

/// What a holder reports about its task.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a> {
    Done,
    /// Done, with a remark.
    DoneWith(&'a str),
    /// Sends the task to review, whatever the policy.
    Review,
    /// The holder ends without saying what became of the task, which goes to review.
    Unreported(&'a str),
    Fail(&'a str),
    /// The review rejects the task, with the reason. Without a review this is a failure.
    Reject(&'a str),
    Release(Option<&'a str>),
}

impl Finish<'_> {
    pub(super) fn end_reason(self) -> EndReason {
        match self {
            Self::Release(_) | Self::Unreported(_) => EndReason::Released,
            _ => EndReason::Completed,
        }
    }

    pub(super) fn rejects(self, lease: &Lease) -> bool {
        matches!(self, Self::Reject(_)) && lease.claimed_from == Some(TaskStatus::Review)
    }

    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Fail(text) | Self::Reject(text) | Self::DoneWith(text) | Self::Unreported(text) => {
                Some(text)
            }
            Self::Release(text) => *text,
            Self::Done | Self::Review => None,
        }
    }

    pub(super) fn target(self, ctx: &Context<'_>, lease: &Lease, task: &Task) -> TaskStatus {
        match self {
            // Finishing a task that was claimed for review approves it.
            Self::Done | Self::DoneWith(_)
                if ctx.policy.review && lease.claimed_from != Some(TaskStatus::Review) =>
            {
                TaskStatus::Review
            }
            Self::Done | Self::DoneWith(_) => TaskStatus::Completed,
            Self::Review | Self::Unreported(_) => TaskStatus::Review,
            Self::Reject(_)
                if self.rejects(lease) && task.rejections.saturating_add(1) < ctx.policy.max_rejections =>
            {
                TaskStatus::Pending
            }
            Self::Fail(_) | Self::Reject(_) => TaskStatus::Failed,
            Self::Release(_) => lease.claimed_from.unwrap_or(TaskStatus::Pending),
        }
    }

    /// Whether a task with this status shows that the same report was made before, for example because the reply was
    /// lost.
    pub(super) fn already(self, lease: &Lease, status: TaskStatus) -> bool {
        match self {
            Self::Done | Self::DoneWith(_) => matches!(status, TaskStatus::Completed | TaskStatus::Review),
            Self::Review | Self::Unreported(_) => status == TaskStatus::Review,
            Self::Fail(_) => status == TaskStatus::Failed,
            Self::Reject(_) => matches!(status, TaskStatus::Pending | TaskStatus::Failed),
            Self::Release(_) => Some(status) == lease.claimed_from,
        }
    }
}
