//! Sessions: runs of a runner, checkpointed so that an interrupted run can be resumed.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{AttemptId, Fence, TaskId};
use crate::lease::{Resource, ResourceKind};
use crate::task::TaskStatus;

/// The stored state of a session. Whether an open session is running follows from its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    Open,
    Completed,
    Failed,
}

impl SessionState {
    pub const ALL: [Self; 3] = [Self::Open, Self::Completed, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The options of the run, so that a resuming runner uses the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOptions {
    pub preset: String,
    /// The program and arguments of the preset when the session began.
    pub agent: Vec<String>,
    /// The preset that reviews, with its program and arguments, if review is enabled.
    pub reviewer: Option<(String, Vec<String>)>,
    pub workdir: String,
    pub task: Option<TaskId>,
    /// The name of the section.
    pub section: Option<String>,
    pub once: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
}

impl SessionOptions {
    /// The differences between these and `new`, one sentence each; empty if both are equal.
    pub fn changes_to(&self, new: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.agent != new.agent {
            changes.push(format!(
                "agent of preset {}: {} → {}",
                self.preset,
                self.agent.join(" "),
                new.agent.join(" ")
            ));
        }
        if self.reviewer != new.reviewer {
            let shown = |reviewer: &Option<(String, Vec<String>)>| match reviewer {
                Some((preset, agent)) => format!("{preset} ({})", agent.join(" ")),
                None => "none".to_owned(),
            };
            changes.push(format!("reviewer: {} → {}", shown(&self.reviewer), shown(&new.reviewer)));
        }
        changes
    }
}

/// The task in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Current {
    pub task: TaskId,
    pub key: String,
    /// The fence of the task's lease.
    pub fence: Fence,
    pub attempt: Option<AttemptId>,
    /// The agent's name for this conversation, needed to resume it; `None` until the agent has reported it.
    pub agent_session: Option<String>,
}

/// A task that the session has finished.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DoneTask {
    pub task: TaskId,
    pub key: String,
    /// The status of the task when the session released it.
    pub status: TaskStatus,
    pub fence: Fence,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: String,
    pub state: SessionState,
    /// The last runner of this session.
    pub runner: String,
    pub options: SessionOptions,
    pub current: Option<Current>,
    /// The fence of the session's lease under which this row was written.
    pub fence: Fence,
    pub error: Option<String>,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Session {
    pub fn resource(&self) -> Resource {
        session_resource(&self.id)
    }
}

pub(crate) fn session_resource(id: &str) -> Resource {
    Resource::new(ResourceKind::Session, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_different_agent_is_a_change_and_the_same_agent_is_none() {
        let old = SessionOptions {
            preset: "mine".into(),
            agent: vec!["./agent.sh".into()],
            ..SessionOptions::default()
        };
        assert!(old.changes_to(&old).is_empty());
        let new = SessionOptions { agent: vec!["./agent.sh".into(), "--fast".into()], ..old.clone() };
        assert_eq!(old.changes_to(&new), ["agent of preset mine: ./agent.sh → ./agent.sh --fast"]);
        let reviewed =
            SessionOptions { reviewer: Some(("r".into(), vec!["./review.sh".into()])), ..old.clone() };
        assert_eq!(old.changes_to(&reviewed), ["reviewer: none → r (./review.sh)"]);
    }
}
