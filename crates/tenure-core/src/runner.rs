//! Runners: daemons that work through a project's tasks, and how their presets fare.

use crate::clock::Timestamp;
use crate::holder::Incarnation;
use crate::id::{SectionId, TaskId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerStatus {
    /// Nothing to do at the moment.
    Idle,
    Running,
    /// It has ended as it should.
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

/// One run of a runner, as the project's store has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runner {
    pub id: String,
    pub status: RunnerStatus,
    pub process: Incarnation,
    pub project_path: String,
    /// Where it looks for work: one section, or all.
    pub section: Option<SectionId>,
    pub preset: String,
    pub current_task: Option<TaskId>,
    pub log_path: Option<String>,
    pub started_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub error: Option<String>,
}

/// Whether a preset's agent can work. It is parked when the agent reports that it cannot, or after three quick failures in
/// a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PresetHealth {
    pub preset: String,
    /// Attempts in a row that ended non-zero within half a minute.
    pub quick_failures: u32,
    /// Whose attempts those were.
    pub tasks: Vec<TaskId>,
    pub parked_at: Option<Timestamp>,
    /// Not before then does wake-up try again.
    pub next_try_at: Option<Timestamp>,
    /// How often it was parked in a row; the pause doubles with each.
    pub times_parked: u32,
    pub reason: Option<String>,
}
