//! The JSON that other programs read, in camelCase with RFC 3339 times.
//!
//! Each shape is a struct and is defined only here. The CLI, MCP and hooks serialize it; MCP derives its published schemas
//! from the same struct. The order of the fields is the order in the output.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::ending::{Ending, Usage};
use crate::error::QueuedWaiter;
use crate::event::{Event, EventKind};
use crate::holder::{HolderKind, Judge, Liveness};
use crate::id::{AttemptId, Fence, LeaseId, SectionId, TaskId};
use crate::job::{Item, ItemSource, ItemState, Job, JobOptions, JobStatus};
use crate::kernel::Remark;
use crate::lease::{Attempt, AttemptState, EndReason, Lease, LeaseState};
use crate::parking::Parking;
use crate::runner::{Runner, RunnerStatus};
use crate::section::{Section, SectionMode};
use crate::session::{Current, DoneTask, Session, SessionOptions};
use crate::store::{Agent, Message};
use crate::task::{Task, TaskStatus};

mod details;
mod log_entry;
mod schema;

pub use details::{ErrorDetails, details};
pub use log_entry::LogEntryJson;

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskJson<'a> {
    pub id: &'a TaskId,
    pub key: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub status: TaskStatus,
    pub section: Option<&'a str>,
    pub section_id: Option<&'a SectionId>,
    pub source_file: Option<&'a str>,
    pub priority: i64,
    pub position: i64,
    pub depends_on: &'a [String],
    pub labels: &'a [String],
    pub attempts: u32,
    pub rejections: u32,
    pub ready: bool,
    pub blocked_by: &'a [String],
    pub lease: Option<LeaseJson<'a>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// How the last attempt by an agent ended; only in the details of a task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ending: Option<LastEndingJson<'a>>,
    /// What all attempts by agents have used, as far as they printed it; only in the details of a task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageJson>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageJson {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cache_write_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// What was used for a task, by an agent or on a day.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSumJson<'a> {
    pub name: &'a str,
    pub attempts: u64,
    #[serde(flatten)]
    pub usage: UsageJson,
}

/// What the attempts at a task have used together; `None` if no agent printed it.
pub fn usage_of(attempts: &[Attempt]) -> Option<UsageJson> {
    let used = attempts.iter().filter_map(|attempt| attempt.run.as_ref()?.usage).reduce(Usage::plus);
    used.map(usage)
}

pub fn usage(used: Usage) -> UsageJson {
    #[expect(clippy::cast_precision_loss, reason = "no agent costs billions of dollars")]
    let usd = used.micro_usd.map(|micro| micro as f64 / 1e6);
    let Usage { input_tokens, output_tokens, cached_tokens, cache_write_tokens, .. } = used;
    UsageJson { input_tokens, output_tokens, cached_tokens, cache_write_tokens, usd }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastEndingJson<'a> {
    pub kind: &'a str,
    pub message: Option<&'a str>,
    pub final_message: Option<&'a str>,
    pub at: Option<Timestamp>,
    pub log: Option<&'a str>,
}

pub fn last_ending(attempt: &Attempt) -> Option<LastEndingJson<'_>> {
    let run = attempt.run.as_ref()?;
    Some(LastEndingJson {
        kind: run.ending.as_str(),
        message: attempt.reason.as_deref(),
        final_message: run.final_message.as_deref(),
        at: attempt.ended_at,
        log: attempt.log_path.as_deref(),
    })
}

pub fn task<'a>(task: &'a Task, now: Timestamp, judge: &dyn Judge) -> TaskJson<'a> {
    TaskJson {
        id: &task.id,
        key: &task.key,
        title: &task.title,
        description: &task.description,
        status: task.status,
        section: task.section.as_ref().map(|section| section.name.as_str()),
        section_id: task.section.as_ref().map(|section| &section.id),
        source_file: task.source_file.as_deref(),
        priority: task.priority,
        position: task.position,
        depends_on: &task.depends_on,
        labels: &task.labels,
        attempts: task.attempts,
        rejections: task.rejections,
        ready: task.ready,
        blocked_by: &task.blocked_by,
        lease: task.lease.as_ref().map(|held| lease(held, now, judge)),
        created_at: task.created_at,
        updated_at: task.updated_at,
        last_ending: None,
        usage: None,
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SectionJson<'a> {
    pub id: &'a SectionId,
    pub name: &'a str,
    pub mode: SectionMode,
    pub priority: i64,
    pub position: i64,
    pub depends_on: &'a [String],
    pub blocked_by: &'a [String],
    pub tasks: u64,
    pub open_tasks: u64,
    pub lease: Option<LeaseJson<'a>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

pub fn section<'a>(section: &'a Section, now: Timestamp, judge: &dyn Judge) -> SectionJson<'a> {
    SectionJson {
        id: &section.id,
        name: &section.name,
        mode: section.mode,
        priority: section.priority,
        position: section.position,
        depends_on: &section.depends_on,
        blocked_by: &section.blocked_by,
        tasks: section.tasks,
        open_tasks: section.open_tasks,
        lease: section.lease.as_ref().map(|held| lease(held, now, judge)),
        created_at: section.created_at,
        updated_at: section.updated_at,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseJson<'a> {
    pub lease_id: &'a LeaseId,
    pub resource: String,
    pub task_id: Option<TaskId>,
    pub section_id: Option<SectionId>,
    pub holder: HolderJson<'a>,
    /// The number of this lease; later leases of the task have greater ones
    pub fence: Fence,
    pub acquired_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
    pub ttl_ms: u64,
    pub expired: bool,
    /// Whether the holder's process lives; null if unknown
    pub alive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
}

pub fn lease<'a>(lease: &'a Lease, now: Timestamp, judge: &dyn Judge) -> LeaseJson<'a> {
    LeaseJson {
        lease_id: &lease.id,
        resource: lease.resource.to_string(),
        task_id: lease.resource.task_id(),
        section_id: lease.resource.section_id(),
        holder: holder(lease),
        fence: lease.fence,
        acquired_at: lease.acquired_at,
        heartbeat_at: lease.heartbeat_at,
        expires_at: lease.expires_at,
        ttl_ms: millis(lease.ttl),
        expired: lease.expires_at <= now || matches!(lease.state(now, judge), LeaseState::Expired),
        alive: lease.liveness(judge).and_then(alive),
        ended_at: lease.ended.map(|(at, _)| at),
        end_reason: lease.ended.map(|(_, reason)| reason),
    }
}

/// `None` if the process cannot be judged from here.
pub fn alive(liveness: Liveness) -> Option<bool> {
    match liveness {
        Liveness::Alive => Some(true),
        Liveness::Dead => Some(false),
        Liveness::Unknown => None,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HolderJson<'a> {
    pub kind: HolderKind,
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
}

pub fn holder(lease: &Lease) -> HolderJson<'_> {
    HolderJson {
        kind: lease.holder.kind,
        id: &lease.holder.id,
        pid: lease.process.as_ref().map(|process| process.process.pid),
        host: lease.process.as_ref().map(|process| process.hostname.as_str()),
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventJson<'a> {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: EventKind,
    pub actor: &'a str,
    pub task_id: Option<&'a TaskId>,
    pub from: Option<TaskStatus>,
    pub to: Option<TaskStatus>,
    pub fence: Option<Fence>,
    /// What else was recorded, depending on `kind`
    pub detail: &'a Value,
}

pub fn event(event: &Event) -> EventJson<'_> {
    EventJson {
        seq: event.seq,
        at: event.at,
        kind: event.kind,
        actor: &event.actor,
        task_id: event.task.as_ref(),
        from: event.from,
        to: event.to,
        fence: event.fence,
        detail: &event.detail,
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentJson<'a> {
    pub id: &'a str,
    pub name: Option<&'a str>,
    pub capabilities: &'a [String],
    pub active_claims: u64,
    pub joined_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub left_at: Option<Timestamp>,
}

pub fn agent(agent: &Agent) -> AgentJson<'_> {
    AgentJson {
        id: &agent.id,
        name: agent.name.as_deref(),
        capabilities: &agent.capabilities,
        active_claims: agent.active_claims,
        joined_at: agent.joined_at,
        last_seen_at: agent.last_seen_at,
        left_at: agent.left_at,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageJson<'a> {
    pub id: i64,
    pub task_id: Option<&'a str>,
    pub task: Option<&'a str>,
    pub from: &'a str,
    pub to: Option<&'a str>,
    pub text: &'a str,
    pub sent_at: Timestamp,
    pub acknowledged_at: Option<Timestamp>,
    pub acknowledged_by: Option<&'a str>,
}

pub fn message(message: &Message) -> MessageJson<'_> {
    MessageJson {
        id: message.id,
        task_id: message.task.as_ref().map(|task| task.id.as_str()),
        task: message.task.as_ref().map(|task| task.key.as_str()),
        from: &message.from,
        to: message.to.as_deref(),
        text: &message.text,
        sent_at: message.sent_at,
        acknowledged_at: message.acknowledged_at,
        acknowledged_by: message.acknowledged_by.as_deref(),
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptJson<'a> {
    pub id: &'a AttemptId,
    pub resource: String,
    pub fence: Fence,
    pub state: AttemptState,
    pub pid: Option<u32>,
    pub log_path: Option<&'a str>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    pub reason: Option<&'a str>,
    pub charged: bool,
}

pub fn attempt(attempt: &Attempt) -> AttemptJson<'_> {
    AttemptJson {
        id: &attempt.id,
        resource: attempt.resource.to_string(),
        fence: attempt.fence,
        state: attempt.state,
        pid: attempt.leader.as_ref().map(|leader| leader.pid),
        log_path: attempt.log_path.as_deref(),
        started_at: attempt.started_at,
        ended_at: attempt.ended_at,
        exit_code: attempt.exit_code,
        reason: attempt.reason.as_deref(),
        charged: attempt.charged,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerJson<'a> {
    pub id: &'a str,
    pub status: RunnerStatus,
    pub pid: u32,
    pub host: &'a str,
    pub project_path: &'a str,
    pub section: Option<&'a str>,
    pub current_task: Option<&'a TaskId>,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub last_heartbeat: Timestamp,
    pub error: Option<&'a str>,
    pub log_path: Option<&'a str>,
    /// Whether its process lives; null if unknown. Left out of hook events
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alive: Option<Option<bool>>,
}

/// A runner; `section` is the name of the section that it works in.
pub fn runner<'a>(runner: &'a Runner, section: Option<&'a str>) -> RunnerJson<'a> {
    RunnerJson {
        id: &runner.id,
        status: runner.status,
        pid: runner.process.process.pid,
        host: &runner.process.hostname,
        project_path: &runner.project_path,
        section,
        current_task: runner.current_task.as_ref(),
        started_at: runner.started_at,
        completed_at: runner.completed_at,
        last_heartbeat: runner.heartbeat_at,
        error: runner.error.as_deref(),
        log_path: runner.log_path.as_deref(),
        alive: None,
    }
}

/// A preset that is not used for a while.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParkedJson<'a> {
    /// `account`, `host` or `preset`
    pub kind: &'a str,
    pub name: &'a str,
    /// How the attempt ended that has parked it
    pub ending: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub parked_at: Option<Timestamp>,
    /// Null if a person has to act
    pub next_try_at: Option<Timestamp>,
    pub resets_at: Option<Timestamp>,
    pub times_parked: u32,
}

pub fn parked(parking: &Parking) -> ParkedJson<'_> {
    ParkedJson {
        kind: parking.subject.kind(),
        name: parking.subject.name(),
        ending: parking.ending.map(Ending::as_str),
        reason: parking.reason.as_deref(),
        parked_at: parking.parked_at,
        next_try_at: parking.tries_at(),
        resets_at: parking.resets_at,
        times_parked: parking.times_parked,
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionJson<'a> {
    pub id: &'a str,
    pub status: &'a str,
    pub runner_id: &'a str,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub done: Vec<DoneTaskJson<'a>>,
    pub current: Option<CurrentTaskJson<'a>>,
    pub options: &'a SessionOptions,
    pub fence: Fence,
    pub error: Option<&'a str>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoneTaskJson<'a> {
    pub task_id: &'a TaskId,
    pub key: &'a str,
    pub status: TaskStatus,
    pub fence: Fence,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentTaskJson<'a> {
    pub task_id: &'a TaskId,
    pub key: &'a str,
    pub fence: Fence,
    pub attempt: Option<&'a AttemptId>,
    pub agent_session: Option<&'a str>,
}

/// A session; `done` lists the tasks that it has finished with.
pub fn session<'a>(session: &'a Session, status: &'a str, done: &'a [DoneTask]) -> SessionJson<'a> {
    let done_task = |task: &'a DoneTask| DoneTaskJson {
        task_id: &task.task,
        key: &task.key,
        status: task.status,
        fence: task.fence,
        at: task.at,
    };
    let current_task = |current: &'a Current| CurrentTaskJson {
        task_id: &current.task,
        key: &current.key,
        fence: current.fence,
        attempt: current.attempt.as_ref(),
        agent_session: current.agent_session.as_deref(),
    };
    SessionJson {
        id: &session.id,
        status,
        runner_id: &session.runner,
        started_at: session.started_at,
        updated_at: session.updated_at,
        done: done.iter().map(done_task).collect(),
        current: session.current.as_ref().map(current_task),
        options: &session.options,
        fence: session.fence,
        error: session.error.as_deref(),
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobJson<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub status: JobStatus,
    pub total: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub skipped: u64,
    pub pending: u64,
    pub running: u64,
    pub dead_letter: Vec<ItemJson<'a>>,
    pub command: &'a [String],
    pub workdir: &'a str,
    pub source: &'a ItemSource,
    pub items_hash: &'a str,
    pub options: &'a JobOptions,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A job; `dead_letters` are its failed items, each with its attempts.
pub fn job<'a>(job: &'a Job, status: JobStatus, dead_letters: &'a [(Item, Vec<Attempt>)]) -> JobJson<'a> {
    JobJson {
        id: &job.id,
        name: &job.name,
        status,
        total: job.counts.total,
        succeeded: job.counts.succeeded,
        failed: job.counts.failed,
        skipped: job.counts.skipped,
        pending: job.counts.pending,
        running: job.counts.running,
        dead_letter: dead_letters.iter().map(|(failed, history)| item(failed, history)).collect(),
        command: &job.definition.command,
        workdir: &job.definition.workdir,
        source: &job.definition.source,
        items_hash: &job.definition.items_hash,
        options: &job.definition.options,
        created_at: job.created_at,
        updated_at: job.updated_at,
    }
}

/// The payload of an item longer than this many bytes is left out; `bytes` says how long it is.
const LONGEST_VALUE: usize = 16 * 1024;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemJson<'a> {
    pub item: u64,
    pub state: ItemState,
    pub value: Value,
    pub bytes: usize,
    pub failures: u32,
    pub error: Option<&'a str>,
    pub due_at: Option<Timestamp>,
    pub log_path: Option<&'a str>,
    pub history: Vec<AttemptJson<'a>>,
    pub updated_at: Timestamp,
}

/// An item of a job with its attempts, newest first.
pub fn item<'a>(item: &'a Item, history: &'a [Attempt]) -> ItemJson<'a> {
    let short = item.payload.len() <= LONGEST_VALUE;
    ItemJson {
        item: item.number,
        state: item.state,
        value: if short { serde_json::from_str(&item.payload).unwrap_or_default() } else { Value::Null },
        bytes: item.payload.len(),
        failures: item.failures,
        error: item.error.as_deref(),
        due_at: (item.state == ItemState::Pending).then_some(item.due_at),
        log_path: history.first().and_then(|attempt| attempt.log_path.as_deref()),
        history: history.iter().map(attempt).collect(),
        updated_at: item.updated_at,
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskNameJson<'a> {
    pub id: &'a str,
    pub key: &'a str,
    pub title: &'a str,
    pub status: TaskStatus,
}

pub fn task_name(name: &crate::error::TaskName) -> TaskNameJson<'_> {
    TaskNameJson { id: &name.id, key: &name.key, title: &name.title, status: name.status }
}

/// `tenure status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusJson<'a> {
    pub project: ProjectJson<'a>,
    pub tasks: BTreeMap<TaskStatus, u64>,
    pub total: u64,
    /// The key of the task that would be claimed next
    pub next_ready: Option<&'a str>,
    pub agents_registered: usize,
    pub active_claims: usize,
    pub lapsed_claims: usize,
    pub waiting: u64,
    pub runners: Vec<RunnerJson<'a>>,
    pub parked: Vec<ParkedJson<'a>>,
    /// The exclusive lock on the project, or null
    pub exclusive_lock: Option<Value>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProjectJson<'a> {
    pub path: &'a Path,
    pub name: Option<&'a str>,
    pub id: Option<String>,
}

/// `tasks list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TasksAnswer<'a> {
    pub tasks: Vec<TaskJson<'a>>,
    /// How many tasks match on all pages; null for a search or a label, unless it is asked for
    pub total: Option<u64>,
}

/// `tasks add`, `tasks update` and other changes of one task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskAnswer<'a> {
    pub task: TaskJson<'a>,
}

/// `tasks show`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskDetailsAnswer<'a> {
    pub task: TaskJson<'a>,
    pub queue: usize,
    pub messages: Vec<MessageJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventJson<'a>>>,
}

/// `tasks claim` and `tasks next --claim`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantAnswer<'a> {
    pub task: TaskJson<'a>,
    pub lease: GrantedLeaseJson<'a>,
    pub taken_over: Option<LeaseJson<'a>>,
    /// Messages left on the task, oldest first, at most 20; finishing the task acknowledges them
    pub messages: Vec<MessageJson<'a>>,
    /// There are more messages than these
    pub more_messages: bool,
    /// The last remark with which the task was released, rejected or failed
    pub last_remark: Option<RemarkJson<'a>>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemarkJson<'a> {
    /// rejected, failed, released, finished or changed
    pub kind: &'a str,
    pub by: &'a str,
    pub at: Timestamp,
    pub text: &'a str,
}

pub fn remark(remark: &Remark) -> RemarkJson<'_> {
    RemarkJson { kind: remark.kind.as_str(), by: &remark.by, at: remark.at, text: &remark.text }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedLeaseJson<'a> {
    #[serde(flatten)]
    pub lease: LeaseJson<'a>,
    /// The secret that proves the holder, as LEASE-KEY in `--lease`; not repeated for a lease that you held already
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_key: Option<&'a str>,
    pub reacquired: bool,
}

/// `tasks renew` and `tasks check`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeaseAnswer<'a> {
    pub lease: LeaseJson<'a>,
}

/// `tasks done`, `tasks fail` and `tasks release`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FinishAnswer<'a> {
    pub task: TaskJson<'a>,
    pub changed: bool,
}

/// A row of `locks list`.
#[derive(Debug, Clone, Serialize)]
pub struct NamedLeaseJson<'a> {
    #[serde(flatten)]
    pub lease: LeaseJson<'a>,
    pub name: &'a str,
}

/// `msg send`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MessageAnswer<'a> {
    pub message: MessageJson<'a>,
}

/// `why`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationJson<'a> {
    pub task: Option<TaskNameJson<'a>>,
    pub moving: bool,
    pub reasons: Vec<ReasonJson<'a>>,
    pub total: usize,
    /// How the last attempt by an agent at the task ended
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ending: Option<LastEndingJson<'a>>,
    /// What all attempts at the task have used
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageJson>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReasonJson<'a> {
    pub kind: &'a str,
    pub reason: &'a str,
    /// The first waiter, if a queue is in the way
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<WaiterJson<'a>>,
}

/// A waiter in a queue
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaiterJson<'a> {
    pub holder: HolderJson<'a>,
    /// What it waits for: `task:ID`, `ready:SECTION`, or `ready:` for any task
    pub wish: String,
    pub since: Timestamp,
}

pub fn waiter(waiter: &QueuedWaiter) -> WaiterJson<'_> {
    WaiterJson {
        holder: HolderJson {
            kind: waiter.holder.kind,
            id: &waiter.holder.id,
            pid: Some(waiter.process.process.pid),
            host: Some(&waiter.process.hostname),
        },
        wish: waiter.wish.to_string(),
        since: waiter.since,
    }
}

pub fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
