//! The JSON that other programs read: the contract's objects, in camelCase, with RFC 3339 times.

use serde_json::{Map, Value, json};

use crate::clock::Timestamp;
use crate::error::{Error, Locked, Lost, TaskName};
use crate::event::Event;
use crate::holder::{Judge, Liveness};
use crate::job::{Item, ItemState, Job, JobStatus};
use crate::lease::{Attempt, Lease, LeaseState};
use crate::section::Section;
use crate::session::{DoneTask, Session};
use crate::store::{Agent, Message};
use crate::task::{Task, TaskStatus};

pub fn task(task: &Task, now: Timestamp, judge: &dyn Judge) -> Value {
    json!({
        "id": task.id,
        "key": task.key,
        "title": task.title,
        "description": task.description,
        "status": task.status.as_str(),
        "section": task.section.as_ref().map(|s| &s.name),
        "sectionId": task.section.as_ref().map(|s| &s.id),
        "sourceFile": task.source_file,
        "priority": task.priority,
        "position": task.position,
        "dependsOn": task.depends_on,
        "labels": task.labels,
        "attempts": task.attempts,
        "rejections": task.rejections,
        "ready": task.ready,
        "blockedBy": task.blocked_by,
        "lease": task.lease.as_ref().map(|l| lease(l, now, judge)),
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
    })
}

pub fn section(section: &Section, now: Timestamp, judge: &dyn Judge) -> Value {
    json!({
        "id": section.id,
        "name": section.name,
        "mode": section.mode.as_str(),
        "priority": section.priority,
        "position": section.position,
        "dependsOn": section.depends_on,
        "blockedBy": section.blocked_by,
        "tasks": section.tasks,
        "openTasks": section.open_tasks,
        "lease": section.lease.as_ref().map(|l| lease(l, now, judge)),
        "createdAt": section.created_at,
        "updatedAt": section.updated_at,
    })
}

pub fn lease(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> Value {
    let mut object = json!({
        "leaseId": lease.id,
        "resource": lease.resource.to_string(),
        "taskId": lease.resource.task_id(),
        "sectionId": lease.resource.section_id(),
        "holder": holder(lease),
        "fence": lease.fence,
        "acquiredAt": lease.acquired_at,
        "heartbeatAt": lease.heartbeat_at,
        "expiresAt": lease.expires_at,
        "ttlMs": millis(lease.ttl),
        "expired": lease.expires_at <= now || matches!(lease.state(now, judge), LeaseState::Expired),
        "alive": alive(lease, judge),
    });
    if let (Some((at, reason)), Some(fields)) = (lease.ended, object.as_object_mut()) {
        fields.insert("endedAt".into(), json!(at));
        fields.insert("endReason".into(), json!(reason.as_str()));
    }
    object
}

/// Yes, no, or nobody can tell.
fn alive(lease: &Lease, judge: &dyn Judge) -> Option<bool> {
    match lease.liveness(judge)? {
        Liveness::Alive => Some(true),
        Liveness::Dead => Some(false),
        Liveness::Unknown => None,
    }
}

pub fn holder(lease: &Lease) -> Value {
    let mut object = Map::new();
    object.insert("kind".into(), json!(lease.holder.kind.as_str()));
    object.insert("id".into(), json!(lease.holder.id));
    if let Some(process) = &lease.process {
        object.insert("pid".into(), json!(process.process.pid));
        object.insert("host".into(), json!(process.hostname));
    }
    Value::Object(object)
}

pub fn event(event: &Event) -> Value {
    json!({
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind.as_str(),
        "actor": event.actor,
        "taskId": event.task,
        "from": event.from.map(TaskStatus::as_str),
        "to": event.to.map(TaskStatus::as_str),
        "fence": event.fence,
        "detail": event.detail,
    })
}

pub fn agent(agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "name": agent.name,
        "capabilities": agent.capabilities,
        "activeClaims": agent.active_claims,
        "joinedAt": agent.joined_at,
        "lastSeenAt": agent.last_seen_at,
        "leftAt": agent.left_at,
    })
}

pub fn message(message: &Message) -> Value {
    json!({
        "id": message.id,
        "taskId": message.task.as_ref().map(|t| &t.id),
        "task": message.task.as_ref().map(|t| &t.key),
        "from": message.from,
        "to": message.to,
        "text": message.text,
        "sentAt": message.sent_at,
        "acknowledgedAt": message.acknowledged_at,
        "acknowledgedBy": message.acknowledged_by,
    })
}

pub fn attempt(attempt: &Attempt) -> Value {
    json!({
        "id": attempt.id,
        "resource": attempt.resource.to_string(),
        "fence": attempt.fence,
        "state": attempt.state.as_str(),
        "pid": attempt.pid,
        "logPath": attempt.log_path,
        "startedAt": attempt.started_at,
        "endedAt": attempt.ended_at,
        "exitCode": attempt.exit_code,
        "reason": attempt.reason,
        "charged": attempt.charged,
    })
}

/// A session; `done` are the tasks that it is through with.
pub fn session(session: &Session, status: &str, done: &[DoneTask]) -> Value {
    json!({
        "id": session.id,
        "status": status,
        "runnerId": session.runner,
        "startedAt": session.started_at,
        "updatedAt": session.updated_at,
        "done": done.iter().map(|task| json!({
            "taskId": task.task, "key": task.key, "status": task.status.as_str(), "fence": task.fence, "at": task.at,
        })).collect::<Vec<_>>(),
        "current": session.current.as_ref().map(|current| json!({
            "taskId": current.task, "key": current.key, "fence": current.fence, "attempt": current.attempt,
            "agentSession": current.agent_session,
        })),
        "options": session.options,
        "fence": session.fence,
        "error": session.error,
    })
}

/// A job; `dead_letters` are made with [`item`].
pub fn job(job: &Job, status: JobStatus, dead_letters: Vec<Value>) -> Value {
    json!({
        "id": job.id,
        "name": job.name,
        "status": status.as_str(),
        "total": job.counts.total,
        "succeeded": job.counts.succeeded,
        "failed": job.counts.failed,
        "skipped": job.counts.skipped,
        "pending": job.counts.pending,
        "running": job.counts.running,
        "deadLetter": dead_letters,
        "command": job.definition.command,
        "workdir": job.definition.workdir,
        "source": job.definition.source,
        "itemsHash": job.definition.items_hash,
        "options": job.definition.options,
        "createdAt": job.created_at,
        "updatedAt": job.updated_at,
    })
}

/// An item longer than this is told by its length.
const LONGEST_VALUE: usize = 16 * 1024;

/// An item of a job with what was tried, newest first.
pub fn item(item: &Item, history: &[Attempt]) -> Value {
    let short = item.payload.len() <= LONGEST_VALUE;
    let value: Value =
        if short { serde_json::from_str(&item.payload).unwrap_or_default() } else { Value::Null };
    json!({
        "item": item.number,
        "state": item.state.as_str(),
        "value": value,
        "bytes": item.payload.len(),
        "failures": item.failures,
        "error": item.error,
        "dueAt": (item.state == ItemState::Pending).then_some(item.due_at),
        "logPath": history.first().and_then(|attempt| attempt.log_path.as_ref()),
        "history": history.iter().map(attempt).collect::<Vec<_>>(),
        "updatedAt": item.updated_at,
    })
}

pub fn task_name(name: &TaskName) -> Value {
    json!({"id": name.id, "key": name.key, "title": name.title, "status": name.status.as_str()})
}

/// What a program needs to know about an error beyond its code and message.
pub fn details(error: &Error) -> Value {
    match error {
        Error::Ambiguous { reference, candidates, more } => json!({
            "reference": reference,
            "candidates": candidates.iter().map(task_name).collect::<Vec<_>>(),
            "more": more,
        }),
        Error::DependencyCycle { path } => json!({"cycle": path}),
        Error::InvalidTransition { task, .. } => json!({"taskId": task.id, "status": task.status.as_str()}),
        Error::NotReady { task, blocked_by } => json!({"taskId": task.id, "blockedBy": blocked_by}),
        Error::TaskNotFound { reference }
        | Error::LockNotFound { reference }
        | Error::JobNotFound { reference }
        | Error::SessionNotFound { reference, .. } => {
            json!({"reference": reference})
        }
        Error::SectionNotFound { name, similar } => json!({"section": name, "similar": similar}),
        Error::AgentNotFound { id } => json!({"agent": id}),
        Error::AmbiguousWork { reference, candidates } => {
            json!({"reference": reference, "candidates": candidates})
        }
        Error::DefinitionChanged { what, changes } => json!({"what": what, "changes": changes}),
        Error::WorkLost { what } => json!({"resource": what}),
        Error::PermissionDenied { path: Some(path), .. } => json!({"path": path.to_string_lossy()}),
        Error::StoreTooNew { found, known } => json!({"found": found, "known": known}),
        Error::NotInitialized { start, .. } => json!({"path": start.to_string_lossy()}),
        Error::Locked(locked) => locked_details(locked),
        Error::StillHeld { lease, .. } => lease_details(lease),
        Error::LeaseLost(lost) | Error::NotHolder(lost) => lost_details(lost),
        Error::WaitTimeout { waited, locked, .. } => {
            let mut object = locked.as_deref().map_or_else(|| json!({}), locked_details);
            if let Some(fields) = object.as_object_mut() {
                fields.insert("waitedMs".into(), json!(millis(*waited)));
            }
            object
        }
        _ => Value::Null,
    }
}

fn locked_details(locked: &Locked) -> Value {
    let mut object = locked.lease.as_ref().map_or_else(|| json!({}), lease_details);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("resource".into(), json!(locked.resource.to_string()));
        if let Some(task) = &locked.task {
            fields.insert("taskId".into(), json!(task.id));
            fields.insert("key".into(), json!(task.key));
        }
        if let Some(section) = locked.resource.section_id() {
            fields.insert("sectionId".into(), json!(section));
            fields.insert("section".into(), json!(locked.name));
        }
        fields.insert("ageMs".into(), json!(millis(locked.age)));
        fields.insert("queue".into(), json!(locked.queue));
    }
    object
}

fn lease_details(lease: &Lease) -> Value {
    json!({
        "leaseId": lease.id,
        "lockedBy": lease.holder.id,
        "holder": holder(lease),
        "fence": lease.fence,
        "acquiredAt": lease.acquired_at,
        "heartbeatAt": lease.heartbeat_at,
        "expiresAt": lease.expires_at,
    })
}

fn lost_details(lost: &Lost) -> Value {
    json!({
        "taskId": lost.task.id,
        "key": lost.task.key,
        "status": lost.task.status.as_str(),
        "fence": lost.shown.or(lost.meant.as_ref().map(|l| l.fence)),
        "endReason": lost.meant.as_ref().and_then(|l| l.ended).map(|(_, reason)| reason.as_str()),
        "expiresAt": lost.meant.as_ref().map(|l| l.expires_at),
        "current": lost.current.as_ref().map(lease_details),
    })
}

pub fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
