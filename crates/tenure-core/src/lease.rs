//! A lease: a holder's exclusive, time-limited, numbered right to a named resource.

use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::holder::{Holder, Incarnation, Judge, Liveness};
use crate::id::{AttemptId, Fence, LeaseId, SectionId, TaskId};
use crate::task::TaskStatus;

/// What can be held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    pub kind: ResourceKind,
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    Task,
    Section,
    /// A place for one runner of the project.
    Runner,
    Session,
    Job,
    Item,
    /// The queue for ready work: any of it, or that of one section. It has waiters, and never a holder.
    Ready,
}

impl ResourceKind {
    pub const ALL: [Self; 7] =
        [Self::Task, Self::Section, Self::Runner, Self::Session, Self::Job, Self::Item, Self::Ready];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Section => "section",
            Self::Runner => "runner",
            Self::Session => "session",
            Self::Job => "job",
            Self::Item => "item",
            Self::Ready => "ready",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// No section has this id.
const MESSAGES: &str = "messages";

impl Resource {
    pub fn new(kind: ResourceKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }

    pub fn task(id: &TaskId) -> Self {
        Self::new(ResourceKind::Task, id.as_str())
    }

    pub fn section(id: &SectionId) -> Self {
        Self::new(ResourceKind::Section, id.as_str())
    }

    /// What a waiter for the next ready task queues for, in one section or in any.
    pub fn ready(section: Option<&SectionId>) -> Self {
        Self::new(ResourceKind::Ready, section.map_or("", SectionId::as_str))
    }

    /// The queue of the processes that listen for messages.
    pub fn messages() -> Self {
        Self::new(ResourceKind::Ready, MESSAGES)
    }

    /// Is this the queue for ready work?
    pub fn is_ready_work(&self) -> bool {
        self.kind == ResourceKind::Ready && self.id != MESSAGES
    }

    /// The section to which a waiter for ready work is limited, if it is.
    pub fn ready_section(&self) -> Option<SectionId> {
        (self.is_ready_work() && !self.id.is_empty()).then(|| SectionId::new(self.id.clone()))
    }

    pub fn task_id(&self) -> Option<TaskId> {
        (self.kind == ResourceKind::Task).then(|| TaskId::new(self.id.clone()))
    }

    pub fn section_id(&self) -> Option<SectionId> {
        (self.kind == ResourceKind::Section).then(|| SectionId::new(self.id.clone()))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    Released,
    Completed,
    Expired,
    HolderDied,
    Forced,
}

impl EndReason {
    pub const ALL: [Self; 5] =
        [Self::Released, Self::Completed, Self::Expired, Self::HolderDied, Self::Forced];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::HolderDied => "holder_died",
            Self::Forced => "forced",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Lease {
    pub id: LeaseId,
    pub fence: Fence,
    pub resource: Resource,
    pub holder: Holder,
    /// The process whose death ends the lease; a bare `claim` has none and only time ends it.
    pub process: Option<Incarnation>,
    /// Where to ring the process that supervises this lease.
    pub doorbell: Option<String>,
    pub ttl: Duration,
    pub acquired_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
    /// The status that the task had before, to which an interrupted attempt returns it.
    pub claimed_from: Option<TaskStatus>,
    pub ended: Option<(Timestamp, EndReason)>,
}

/// How a lease stands at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Blocks everybody else.
    Live,
    /// Its time is up, and nothing but time has ended it.
    Expired,
    /// Its recorded process is proven dead.
    HolderDead,
    /// Given up, finished or taken away.
    Ended(EndReason),
}

impl Lease {
    pub fn state(&self, now: Timestamp, judge: &dyn Judge) -> LeaseState {
        match self.ended {
            Some((_, EndReason::Expired)) => LeaseState::Expired,
            Some((_, EndReason::HolderDied)) => LeaseState::HolderDead,
            Some((_, reason)) => LeaseState::Ended(reason),
            None if self.liveness(judge) == Some(Liveness::Dead) => LeaseState::HolderDead,
            None if self.expires_at <= now => LeaseState::Expired,
            None => LeaseState::Live,
        }
    }

    /// What is known of the recorded process; nothing without one.
    pub fn liveness(&self, judge: &dyn Judge) -> Option<Liveness> {
        self.process.as_ref().map(|process| judge.liveness(process))
    }

    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Does `holder` mean this lease's holder?
    pub fn held_by(&self, holder: &Holder) -> bool {
        self.holder == *holder
    }
}

/// A place in the queue for a resource. Numbers rise in the order of arrival, across all queues of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticket {
    pub number: i64,
    pub resource: Resource,
    pub holder: Holder,
    pub process: Incarnation,
    pub doorbell: Option<String>,
    pub created_at: Timestamp,
    pub refreshed_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    Running,
    /// Its lease is gone; its processes are being ended, and nothing new may start before they are.
    Ending,
    Ended,
}

impl AttemptState {
    pub const ALL: [Self; 3] = [Self::Running, Self::Ending, Self::Ended];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Ended => "ended",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// One execution under a lease: a runner's agent, `tasks run`, a job's item.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub id: AttemptId,
    pub resource: Resource,
    pub fence: Fence,
    pub state: AttemptState,
    /// The supervising process.
    pub owner: Incarnation,
    /// The process that was started, once it was.
    pub pid: Option<u32>,
    pub log_path: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    /// Why it ended, in a word or a sentence.
    pub reason: Option<String>,
    /// Counts against `tasks.maxAttempts`.
    pub charged: bool,
}
