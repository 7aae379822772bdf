//! Something that happened, as hooks are told of it: `{event, at, project, task?, section?, runner?, lease?}`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenure_core::Timestamp;
use tenure_core::config::HookEvent;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    pub event: HookEvent,
    /// Milliseconds since the epoch, as the store has it.
    at: i64,
    about: Map<String, Value>,
}

impl Happening {
    pub fn new(event: HookEvent, at: Timestamp) -> Self {
        Self { event, at: at.as_millis(), about: Map::new() }
    }

    /// Adds the thing that it happened to, under its name: `task`, `section`, `runner`, `lease`.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.about.insert(name.to_owned(), value);
        self
    }

    /// What a hook can speak of, and what a webhook sends.
    pub fn payload(&self, project: &Value) -> Value {
        let at = Timestamp::from_millis(self.at);
        let mut payload = Map::new();
        payload.insert("event".into(), json!(self.event.as_str()));
        payload.insert("at".into(), json!(at));
        payload.insert("project".into(), project.clone());
        payload.extend(self.about.clone());
        Value::Object(payload)
    }

    /// The task's key, if it happened to one.
    pub(super) fn task_key(&self) -> Option<&str> {
        self.about.get("task")?.get("key")?.as_str()
    }

    /// An example, to try a hook with.
    pub fn sample(event: HookEvent, at: Timestamp) -> Self {
        let id = "00000000-0000-4000-8000-000000000001";
        let status = match event {
            HookEvent::TaskCompleted => "completed",
            HookEvent::TaskFailed => "failed",
            HookEvent::TaskUpdated => "in_progress",
            _ => "pending",
        };
        let task = json!({
            "id": id, "key": "T1", "title": "A sample task", "description": "Only to try a hook.",
            "status": status, "section": "Samples", "sectionId": id, "sourceFile": null, "priority": 100,
            "position": 1, "dependsOn": [], "labels": ["sample"], "attempts": 0, "rejections": 0,
            "ready": false, "blockedBy": [], "lease": null, "createdAt": at, "updatedAt": at,
        });
        let section = json!({
            "id": id, "name": "Samples", "mode": "serial", "priority": 100, "position": 1, "dependsOn": [],
            "blockedBy": [], "tasks": 1, "openTasks": 0, "lease": null, "createdAt": at, "updatedAt": at,
        });
        let lease = json!({
            "leaseId": "L00000000", "resource": format!("task:{id}"), "taskId": id, "sectionId": null,
            "holder": {"kind": "agent", "id": "A00000000"}, "fence": 1, "acquiredAt": at, "heartbeatAt": at,
            "expiresAt": at, "ttlMs": 900_000, "expired": true, "alive": null, "endReason": "expired",
        });
        let runner = json!({
            "id": id, "status": "running", "pid": 1, "projectPath": null, "section": null, "currentTask": null,
            "startedAt": at, "completedAt": null, "lastHeartbeat": at, "error": null, "alive": true,
        });
        let sample = Self::new(event, at);
        match event {
            HookEvent::SectionCompleted => sample.with("section", section),
            HookEvent::ProjectCompleted => sample,
            HookEvent::RunnerStarted | HookEvent::RunnerStopped | HookEvent::RunnerFailed => {
                sample.with("runner", runner)
            }
            HookEvent::LeaseLost => sample.with("task", task).with("lease", lease),
            _ => sample.with("task", task),
        }
    }
}
