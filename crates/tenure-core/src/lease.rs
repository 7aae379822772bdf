//! A lease: a holder's exclusive, time-limited, numbered right to a named resource.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ending::{Ending, Usage};
use crate::holder::{Holder, Incarnation, Judge, Liveness};
use crate::id::{AttemptId, Fence, LeaseId, LeaseKey, LeaseProof, SectionId, TaskId};
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
    /// A slot for one runner of the project.
    Runner,
    Session,
    Job,
    Item,
    /// The queue for ready work of the project or of one section. It has tickets, never a holder.
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

    /// The queue for any ready task, of one section or of all.
    pub fn ready(section: Option<&SectionId>) -> Self {
        Self::new(ResourceKind::Ready, section.map_or("", SectionId::as_str))
    }

    /// Whether a ticket for this is served with tasks (Q1): it names a task or any ready task.
    pub fn is_work(&self) -> bool {
        self.kind == ResourceKind::Task || self.is_ready_work()
    }

    /// Whether this is the queue for any ready task.
    pub fn is_ready_work(&self) -> bool {
        self.kind == ResourceKind::Ready
    }

    /// The section to which this queue for ready work is limited, if any.
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
    /// The hash of the lease's key ([`LeaseProof::hash`]).
    pub key_hash: String,
    pub resource: Resource,
    pub holder: Holder,
    /// The process whose death ends the lease. A plain `claim` records none, so only its expiry ends it.
    pub process: Option<Incarnation>,
    /// The doorbell of the process that supervises this lease.
    pub doorbell: Option<String>,
    pub ttl: Duration,
    pub acquired_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
    /// The status of the task before the claim, restored when an attempt is interrupted.
    pub claimed_from: Option<TaskStatus>,
    /// The greatest number of a message on the task that the holder was shown; 0 if there was none.
    pub messages_through: i64,
    pub ended: Option<(Timestamp, EndReason)>,
}

/// The state of a lease at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Blocks all other holders.
    Live,
    /// Past its expiry, and not ended otherwise.
    Expired,
    /// The recorded process is proven dead.
    HolderDead,
    /// Released, finished or evicted.
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

    /// The liveness of the recorded process, or `None` if there is none.
    pub fn liveness(&self, judge: &dyn Judge) -> Option<Liveness> {
        self.process.as_ref().map(|process| judge.liveness(process))
    }

    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether both are the same grant. In a store that was restored or replaced, another lease may have the same fence and
    /// even the same id, but not the same key.
    pub fn is_same(&self, other: &Self) -> bool {
        self.fence == other.fence && self.id == other.id && self.key_hash == other.key_hash
    }

    /// Whether `key` is the key of this lease.
    pub fn has_key(&self, key: &LeaseKey) -> bool {
        LeaseProof { lease: self.id.clone(), key: key.clone() }.hash() == self.key_hash
    }

    /// Whether `holder` holds this lease.
    pub fn held_by(&self, holder: &Holder) -> bool {
        self.holder == *holder
    }
}

/// A waiter's entry in a queue. Numbers increase in the order of arrival, across all queues of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticket {
    pub number: i64,
    /// What the waiter wants: a task, ready work ([`Resource::ready`]), or a slot, a session, a job or messages.
    pub resource: Resource,
    /// The waiter also takes tasks that are in `review`.
    pub review: bool,
    pub holder: Holder,
    pub process: Incarnation,
    pub doorbell: Option<String>,
    pub created_at: Timestamp,
    pub refreshed_at: Timestamp,
    /// How long the ticket counts after it was last refreshed. The waiter decides this, because it depends on how often
    /// the waiter refreshes.
    pub life: Duration,
}

impl Ticket {
    /// Whether the ticket was refreshed in time. It also has to belong to a process that is not dead.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.refreshed_at.after(self.life) > now
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    Running,
    /// The lease has ended and the processes are being reaped; nothing new may start until they are gone.
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

/// The first process of an attempt and where its descendants are found. It has the host, boot and pid namespace of the
/// attempt's owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Also the number of the attempt's process group.
    pub pid: u32,
    /// In clock ticks since boot; 0 if unknown.
    pub start_time: u64,
    /// The session of the process group; 0 if unknown.
    pub session: u32,
    /// The attempt's own control group, if one could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The folder for the sockets of tmux servers that the attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmux_folder: Option<String>,
}

/// One execution under a lease: a runner's agent, `tasks run`, or an item of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub id: AttemptId,
    pub resource: Resource,
    pub fence: Fence,
    pub state: AttemptState,
    /// The supervising process.
    pub owner: Incarnation,
    /// The started process; `None` before the start.
    pub leader: Option<Leader>,
    pub log_path: Option<String>,
    /// The agent's name, or the preset's for a program that is not known. `None` if no agent works.
    pub agent: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    /// Why it ended: a short phrase or a sentence.
    pub reason: Option<String>,
    /// Counts against `tasks.maxAttempts`.
    pub charged: bool,
    /// The hash of the nonce that an outcome kept outside the store must have.
    pub outcome_hash: Option<String>,
    /// Soon after the start, the task was returned by a process other than the supervisor.
    pub quick_return: bool,
    /// What is known about the agent's run, once it has ended.
    pub run: Option<AgentRun>,
}

/// The run of an agent in an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentRun {
    pub ending: Ending,
    /// The agent's name of its conversation, needed to resume it.
    pub conversation: Option<String>,
    /// The end of the agent's last message.
    pub final_message: Option<String>,
    pub usage: Option<Usage>,
}
