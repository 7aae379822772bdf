//! Tasks, their statuses, and the possible transitions.

use std::fmt;

use crate::clock::Timestamp;
use crate::id::{SectionId, TaskId};
use crate::lease::Lease;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskStatus {
    Pending,
    InProgress,
    Review,
    Completed,
    Failed,
    Skipped,
}

impl TaskStatus {
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::InProgress, Self::Review, Self::Completed, Self::Failed, Self::Skipped];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Review => "review",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// As it is shown to people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::InProgress => "In progress",
            Self::Review => "In review",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
        }
    }

    /// Whether dependents of the task are unblocked.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A lower priority comes first.
pub const DEFAULT_PRIORITY: i64 = 100;
/// The greatest accepted absolute value of a priority.
pub const MAX_PRIORITY: i64 = 1_000_000;

/// A task as stored, with the fields that the store computes.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub key: String,
    pub title: String,
    pub description: String,
    pub status: TaskStatus,
    pub section: Option<SectionRef>,
    pub source_file: Option<String>,
    pub priority: i64,
    pub position: i64,
    /// Keys of the tasks that this one depends on.
    pub depends_on: Vec<String>,
    pub labels: Vec<String>,
    pub attempts: u32,
    pub rejections: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Whether the viewer of the transaction can claim it now.
    pub ready: bool,
    /// Keys of unfinished dependencies, and `section:NAME` for unfinished sections that its section depends on.
    pub blocked_by: Vec<String>,
    /// The open lease, live or lapsed.
    pub lease: Option<Lease>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRef {
    pub id: SectionId,
    pub name: String,
    pub serial: bool,
}
