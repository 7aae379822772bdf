//! The event feed. Each event is written in the transaction of the change that it records.

use serde_json::Value;

use crate::clock::Timestamp;
use crate::id::{Fence, TaskId};
use crate::task::TaskStatus;

macro_rules! event_kinds {
    ($($variant:ident => $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind { $($variant,)* }

        impl EventKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

event_kinds! {
    TaskCreated => "task.created",
    TaskUpdated => "task.updated",
    TaskStatus => "task.status",
    TaskDeleted => "task.deleted",
    SectionCreated => "section.created",
    SectionUpdated => "section.updated",
    SectionDeleted => "section.deleted",
    LeaseAcquired => "lease.acquired",
    LeaseRevived => "lease.revived",
    LeaseEnded => "lease.ended",
    WriteRejected => "write.rejected",
    AttemptStarted => "attempt.started",
    AttemptEnding => "attempt.ending",
    AttemptEnded => "attempt.ended",
    AgentJoined => "agent.joined",
    AgentLeft => "agent.left",
    MessageSent => "message.sent",
    MessageAcknowledged => "message.acknowledged",
    RunnerStarted => "runner.started",
    RunnerStopped => "runner.stopped",
    RunnerFailed => "runner.failed",
    PresetParked => "preset.parked",
    PresetUnparked => "preset.unparked",
    JobCreated => "job.created",
    JobStatus => "job.status",
    JobChanged => "job.changed",
    ItemStatus => "item.status",
    SessionStarted => "session.started",
    SessionEnded => "session.ended",
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub actor: String,
    pub task: Option<TaskId>,
    pub from: Option<TaskStatus>,
    pub to: Option<TaskStatus>,
    pub fence: Option<Fence>,
    pub detail: Value,
}

/// An event before the store has numbered it.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    pub kind: EventKind,
    pub actor: &'a str,
    pub task: Option<&'a TaskId>,
    pub from: Option<TaskStatus>,
    pub to: Option<TaskStatus>,
    pub fence: Option<Fence>,
    pub detail: Value,
}

impl<'a> NewEvent<'a> {
    pub fn new(kind: EventKind, actor: &'a str) -> Self {
        Self { kind, actor, task: None, from: None, to: None, fence: None, detail: Value::Null }
    }

    #[must_use]
    pub fn task(mut self, task: &'a TaskId) -> Self {
        self.task = Some(task);
        self
    }

    #[must_use]
    pub fn status(mut self, from: TaskStatus, to: TaskStatus) -> Self {
        self.from = Some(from);
        self.to = Some(to);
        self
    }

    #[must_use]
    pub fn fence(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}
