//! Runners: daemons that work on a project's tasks.

use crate::clock::Timestamp;
use crate::holder::Incarnation;
use crate::id::{SectionId, TaskId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerStatus {
    /// Running without a task.
    Idle,
    Running,
    /// Ended normally.
    Completed,
    Failed,
}

impl RunnerStatus {
    pub const ALL: [Self; 4] = [Self::Idle, Self::Running, Self::Completed, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// One run of a runner, as stored in the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runner {
    pub id: String,
    pub status: RunnerStatus,
    pub process: Incarnation,
    pub project_path: String,
    /// The section that it works on; `None` for all.
    pub section: Option<SectionId>,
    pub preset: String,
    pub current_task: Option<TaskId>,
    pub log_path: Option<String>,
    pub started_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub error: Option<String>,
}
