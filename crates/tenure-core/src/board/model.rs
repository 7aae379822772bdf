//! The parts of a board.

use std::collections::BTreeMap;

use super::attention::Attention;
use super::groups::Group;
use super::runners::RunnerLine;
use crate::clock::Timestamp;
use crate::ending::Usage;
use crate::event::{Event, EventKind};
use crate::event_text::{self, Names};
use crate::holder::{Holder, Judge};
use crate::id::{AttemptId, Fence, LeaseId, TaskId};
use crate::job::{Counts, JobStatus};
use crate::lease::{Attempt, AttemptState, Lease, LeaseState};
use crate::parking::{Parking, Subject};
use crate::task::{Task, TaskStatus};
use crate::why::Reason;

/// Everything that a board shows at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    /// The time of the transaction in which the rows were read.
    pub now: Timestamp,
    pub project: ProjectHead,
    /// What waits for a person, the most urgent first.
    pub attention: Page<Attention>,
    /// The tasks that are held, in working order.
    pub held: Page<Held>,
    /// The waiters in the order of arrival.
    pub queue: Page<Waiting>,
    /// Why there is no progress, or that there is; as in `tenure why`. Never empty.
    pub reasons: Vec<Reason>,
    /// Whether none of the reasons keeps the project from making progress.
    pub moving: bool,
    pub parked: Vec<Parked>,
    pub runners: Vec<RunnerLine>,
    /// The newest jobs first.
    pub jobs: Page<JobLine>,
    pub groups: Vec<Group>,
}

/// Some rows of a list, beginning with the row `offset`.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub offset: u64,
    /// The number of rows of the whole list.
    pub total: u64,
    /// The list may be longer than `total`: the rows after these were not counted, except for the first.
    pub is_uncounted: bool,
}

impl<T> Page<T> {
    pub fn first(rows: Vec<T>, total: u64) -> Self {
        Self { rows, offset: 0, total, is_uncounted: false }
    }

    pub fn whole(rows: Vec<T>) -> Self {
        let total = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        Self { rows, offset: 0, total, is_uncounted: false }
    }

    /// How many rows of the list come after these.
    pub fn more(&self) -> u64 {
        let shown = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        self.total.saturating_sub(self.offset.saturating_add(shown))
    }

    pub(super) fn map<U>(self, make: impl FnMut(T) -> U) -> Page<U> {
        let Self { rows, offset, total, is_uncounted } = self;
        Page { rows: rows.into_iter().map(make).collect(), offset, total, is_uncounted }
    }
}

/// The project and the numbers of its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectHead {
    pub name: Option<String>,
    pub path: String,
    /// The number of tasks with each status, in the order of [`TaskStatus::ALL`].
    pub tasks: Vec<(TaskStatus, u64)>,
    pub total: u64,
    /// Agents that have joined and not left.
    pub agents: usize,
    /// What agents have used in attempts that ended in the last 24 hours; `None` if none printed it.
    pub used_today: Option<Usage>,
    /// The exclusive lock, in words.
    pub exclusive: Option<String>,
}

impl ProjectHead {
    pub fn count(&self, status: TaskStatus) -> u64 {
        self.tasks.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count)
    }
}

/// A task as one row.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskLine {
    pub id: TaskId,
    pub key: String,
    pub title: String,
    pub status: TaskStatus,
    pub section: Option<String>,
    pub priority: i64,
    pub labels: Vec<String>,
    /// Whether the viewer could claim it now.
    pub ready: bool,
    pub blocked_by: Vec<String>,
    pub attempts: u32,
    pub updated_at: Timestamp,
    pub lease: Option<LeaseLine>,
}

/// An open lease as part of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseLine {
    pub id: LeaseId,
    pub fence: Fence,
    pub holder: Holder,
    /// The pid and the machine of the process whose death ends the lease.
    pub process: Option<(u32, String)>,
    pub state: LeaseState,
    pub acquired_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A task that is held, live or lapsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub task: TaskLine,
    pub lease: LeaseLine,
    /// How many live waiters want exactly this task.
    pub waiting: usize,
    pub attempt: Option<RunningAttempt>,
    /// What the attempts at the task have used, as far as it is known.
    pub used: Option<Usage>,
    pub last_event: Option<EventLine>,
}

/// An attempt that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningAttempt {
    pub agent: Option<String>,
    pub started_at: Timestamp,
    pub log_path: Option<String>,
    pub host: String,
    /// Its lease is over, and its processes are being ended.
    pub is_ending: bool,
}

/// A live ticket.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub ticket: i64,
    pub holder: Holder,
    pub pid: u32,
    pub host: String,
    /// What it waits for: `task F001`, `any task`.
    pub wish: String,
    /// It also takes tasks in review.
    pub review: bool,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parked {
    pub subject: Subject,
    pub sentence: String,
    /// When it is tried again; `None` if a person has to act first.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JobLine {
    pub id: String,
    pub name: String,
    pub status: JobStatus,
    pub counts: Counts,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EventLine {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub actor: String,
    pub task: Option<TaskId>,
    /// A task's key, a section's name, or another id.
    pub subject: String,
    pub title: Option<String>,
    pub from: Option<TaskStatus>,
    pub to: Option<TaskStatus>,
    pub fence: Option<Fence>,
    /// The change, or the message.
    pub what: Option<String>,
    /// The remark with a change of status, or the reason of an ending.
    pub remark: Option<String>,
}

impl LeaseLine {
    pub fn of(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> Self {
        let process = lease.process.as_ref();
        Self {
            id: lease.id.clone(),
            fence: lease.fence,
            holder: lease.holder.clone(),
            process: process.map(|process| (process.process.pid, process.hostname.clone())),
            state: lease.state(now, judge),
            acquired_at: lease.acquired_at,
            heartbeat_at: lease.heartbeat_at,
            expires_at: lease.expires_at,
        }
    }
}

impl TaskLine {
    pub fn of(task: &Task, now: Timestamp, judge: &dyn Judge) -> Self {
        Self {
            id: task.id.clone(),
            key: task.key.clone(),
            title: task.title.clone(),
            status: task.status,
            section: task.section.as_ref().map(|section| section.name.clone()),
            priority: task.priority,
            labels: task.labels.clone(),
            ready: task.ready,
            blocked_by: task.blocked_by.clone(),
            attempts: task.attempts,
            updated_at: task.updated_at,
            lease: task.lease.as_ref().map(|lease| LeaseLine::of(lease, now, judge)),
        }
    }
}

impl RunningAttempt {
    /// The newest attempt that has not ended.
    pub(super) fn among(attempts: &[Attempt]) -> Option<Self> {
        let open = attempts.iter().find(|attempt| attempt.state != AttemptState::Ended)?;
        Some(Self {
            agent: open.agent.clone(),
            started_at: open.started_at,
            log_path: open.log_path.clone(),
            host: open.owner.hostname.clone(),
            is_ending: open.state == AttemptState::Ending,
        })
    }
}

impl Parked {
    pub(super) fn of(parking: Parking, now: Timestamp) -> Self {
        Self { sentence: parking.sentence(now), until: parking.tries_at(), subject: parking.subject }
    }
}

impl EventLine {
    pub(super) fn of(event: &Event, names: &Names) -> Self {
        Self {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            actor: event.actor.clone(),
            task: event.task.clone(),
            subject: names.subject(event),
            title: names.title(event).map(str::to_owned),
            from: event.from,
            to: event.to,
            fence: event.fence,
            what: event_text::what(event),
            remark: event_text::remark(event).map(str::to_owned),
        }
    }
}

/// What the attempts have used together; `None` if no agent printed it. `so_far`: what running ones have used.
pub fn used(attempts: &[Attempt], so_far: &BTreeMap<AttemptId, Usage>) -> Option<Usage> {
    let of = |attempt: &Attempt| match &attempt.run {
        Some(run) => run.usage,
        None => so_far.get(&attempt.id).copied(),
    };
    attempts.iter().filter_map(of).reduce(Usage::plus)
}
