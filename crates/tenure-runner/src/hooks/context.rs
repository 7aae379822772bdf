//! The input of a hook: `{event, at, project, task?, section?, runner?, lease?}`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenure_core::config::HookEvent;
use tenure_core::holder::{Holder, HolderKind, Incarnation, ThisMachine};
use tenure_core::id::{Fence, LeaseId, SectionId, TaskId};
use tenure_core::lease::{EndReason, Lease, Resource};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::section::{Section, SectionMode};
use tenure_core::store::NewTask;
use tenure_core::task::{DEFAULT_PRIORITY, SectionRef, Task, TaskStatus};
use tenure_core::{Timestamp, wire};

/// One event with the objects that it concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookContext {
    pub event: HookEvent,
    /// Milliseconds since the epoch, from the store's clock.
    at: i64,
    about: Map<String, Value>,
}

impl HookContext {
    pub fn new(event: HookEvent, at: Timestamp) -> Self {
        Self { event, at: at.as_millis(), about: Map::new() }
    }

    /// Adds an object that the event concerns under its name: `task`, `section`, `runner` or `lease`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.about.insert(name.to_owned(), json!(value));
        self
    }

    /// The object that templates are filled from and that a webhook sends.
    pub fn payload(&self, project: &Value) -> Value {
        let at = Timestamp::from_millis(self.at);
        let mut payload = Map::new();
        payload.insert("event".into(), json!(self.event.as_str()));
        payload.insert("at".into(), json!(at));
        payload.insert("project".into(), project.clone());
        payload.extend(self.about.clone());
        Value::Object(payload)
    }

    /// The task's key, if the event concerns a task.
    pub(super) fn task_key(&self) -> Option<&str> {
        self.about.get("task")?.get("key")?.as_str()
    }

    /// An example of the event, to test a hook with.
    pub fn sample(event: HookEvent, at: Timestamp) -> Self {
        let sample = Self::new(event, at);
        match event {
            HookEvent::SectionCompleted => {
                sample.with("section", wire::section(&sample_section(at), at, &ThisMachine))
            }
            HookEvent::ProjectCompleted => sample,
            HookEvent::RunnerStarted | HookEvent::RunnerStopped | HookEvent::RunnerFailed => {
                sample.with("runner", wire::runner(&sample_runner(event, at), None))
            }
            HookEvent::LeaseLost => sample
                .with("task", wire::task(&sample_task(event, at), at, &ThisMachine))
                .with("lease", wire::lease(&sample_lease(at), at, &ThisMachine)),
            _ => sample.with("task", wire::task(&sample_task(event, at), at, &ThisMachine)),
        }
    }
}

const SAMPLE_ID: &str = "00000000-0000-4000-8000-000000000001";
const SAMPLE_SECTION: &str = "Samples";

fn sample_task(event: HookEvent, at: Timestamp) -> Task {
    let section = SectionRef { id: SectionId::new(SAMPLE_ID), name: SAMPLE_SECTION.into(), serial: true };
    let task = NewTask {
        description: "Only to try a hook.".into(),
        status: match event {
            HookEvent::TaskCompleted => TaskStatus::Completed,
            HookEvent::TaskFailed => TaskStatus::Failed,
            HookEvent::TaskUpdated => TaskStatus::InProgress,
            _ => TaskStatus::Pending,
        },
        section: Some(section.id.clone()),
        position: 1,
        labels: vec!["sample".into()],
        ..NewTask::new(TaskId::new(SAMPLE_ID), "T1", "A sample task")
    };
    task.stored(Some(section), at)
}

fn sample_section(at: Timestamp) -> Section {
    Section {
        id: SectionId::new(SAMPLE_ID),
        name: SAMPLE_SECTION.into(),
        mode: SectionMode::Serial,
        priority: DEFAULT_PRIORITY,
        position: 1,
        depends_on: Vec::new(),
        tasks: 1,
        open_tasks: 0,
        blocked_by: Vec::new(),
        lease: None,
        created_at: at,
        updated_at: at,
    }
}

fn sample_lease(at: Timestamp) -> Lease {
    Lease {
        id: LeaseId::new("L00000000"),
        fence: Fence::new(1),
        key_hash: String::new(),
        resource: Resource::task(&TaskId::new(SAMPLE_ID)),
        holder: Holder { kind: HolderKind::Agent, id: "A00000000".into() },
        process: None,
        doorbell: None,
        ttl: Duration::from_mins(15),
        acquired_at: at,
        heartbeat_at: at,
        expires_at: at,
        claimed_from: None,
        messages_through: 0,
        ended: Some((at, EndReason::Expired)),
    }
}

fn sample_runner(event: HookEvent, at: Timestamp) -> Runner {
    let (status, completed_at, error) = match event {
        HookEvent::RunnerFailed => (RunnerStatus::Failed, Some(at), Some("a sample error".into())),
        HookEvent::RunnerStopped => (RunnerStatus::Completed, Some(at), None),
        _ => (RunnerStatus::Running, None, None),
    };
    Runner {
        id: SAMPLE_ID.into(),
        status,
        process: Incarnation::current(),
        project_path: "/path/to/project".into(),
        section: None,
        preset: "sample".into(),
        current_task: None,
        log_path: None,
        started_at: at,
        heartbeat_at: at,
        completed_at,
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_sample_with_what_it_concerns() {
        let at = Timestamp::from_millis(0);
        for event in HookEvent::ALL.iter().copied() {
            let payload = HookContext::sample(event, at).payload(&Value::Null);
            let name = event.as_str().split('.').next().unwrap();
            let about = match event {
                HookEvent::LeaseLost => vec!["task", "lease"],
                HookEvent::ProjectCompleted => vec![],
                _ => vec![name],
            };
            for field in about {
                assert!(payload[field].is_object(), "{event}: {payload}");
            }
        }
        let lost = HookContext::sample(HookEvent::LeaseLost, at).payload(&Value::Null);
        assert_eq!(lost["lease"]["endReason"], "expired");
        assert_eq!(lost["lease"]["endedAt"], "1970-01-01T00:00:00.000Z");
    }
}
