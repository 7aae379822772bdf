//! Sessions: runs of a runner, checkpointed so that an interrupted one can go on.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{AttemptId, Fence, TaskId};
use crate::lease::{Resource, ResourceKind};
use crate::task::TaskStatus;

/// What is stored of a session. Whether an open one is running is asked of its lease.
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

/// What its runner was told, so that another can be told the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOptions {
    pub preset: String,
    /// What the preset meant then: the program and its arguments.
    pub agent: Vec<String>,
    /// Who reviews, and what that meant, where review is on.
    pub reviewer: Option<(String, Vec<String>)>,
    pub workdir: String,
    pub task: Option<TaskId>,
    /// By name.
    pub section: Option<String>,
    pub once: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
}

impl SessionOptions {
    /// What is different in `new`, each as a sentence. Nothing if it does the same.
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

/// The task under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Current {
    pub task: TaskId,
    pub key: String,
    /// Of the task's lease.
    pub fence: Fence,
    pub attempt: Option<AttemptId>,
    /// What the agent calls this conversation, if it has said so: its own resume needs it.
    pub agent_session: Option<String>,
}

/// A task that the session is through with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DoneTask {
    pub task: TaskId,
    pub key: String,
    /// What it was when the session let go of it.
    pub status: TaskStatus,
    pub fence: Fence,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: String,
    pub state: SessionState,
    /// The last runner that worked on it.
    pub runner: String,
    pub options: SessionOptions,
    pub current: Option<Current>,
    /// Of the session's lease, under which this was written.
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
    fn another_agent_is_a_change_and_the_same_is_none() {
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
