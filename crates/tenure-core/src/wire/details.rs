//! The `details` of an error.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use super::{HolderJson, TaskNameJson, WaiterJson, holder, millis, task_name, waiter};
use crate::clock::Timestamp;
use crate::error::{Error, Locked, Lost};
use crate::id::{Fence, LeaseId, SectionId};
use crate::lease::{EndReason, Lease};
use crate::task::TaskStatus;

/// What a program needs to know about an error beyond its code and message; `null` for most errors.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ErrorDetails<'a> {
    Ambiguous { reference: &'a str, candidates: Vec<TaskNameJson<'a>>, more: bool },
    AmbiguousWork { reference: &'a str, candidates: &'a [String] },
    Cycle { cycle: &'a [String] },
    Transition { task_id: &'a str, status: TaskStatus },
    NotReady { task_id: &'a str, blocked_by: &'a [String] },
    NotFound { reference: &'a str },
    Unsupported { what: &'a str },
    SectionNotFound { section: &'a str, similar: &'a [String] },
    AgentNotFound { agent: &'a str },
    DefinitionChanged { what: &'a str, changes: &'a [String] },
    WorkLost { resource: &'a str },
    Path { path: Cow<'a, str> },
    StoreTooNew { found: i64, known: i64 },
    MovedTo { moved_to: &'a str },
    FilledFrom { filled_from: &'a str },
    Reserved { reserved: usize, first: WaiterJson<'a> },
    Held(HeldJson<'a>),
    Locked(Box<LockedJson<'a>>),
    Waited(Box<WaitedJson<'a>>),
    Lost(Box<LostJson<'a>>),
    Nothing,
}

/// The lease that is in the way.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldJson<'a> {
    pub lease_id: &'a LeaseId,
    pub locked_by: &'a str,
    pub holder: HolderJson<'a>,
    pub fence: Fence,
    pub acquired_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockedJson<'a> {
    #[serde(flatten)]
    pub lease: Option<HeldJson<'a>>,
    pub resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_id: Option<SectionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<&'a str>,
    pub age_ms: u64,
    pub queue: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<WaiterJson<'a>>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitedJson<'a> {
    #[serde(flatten)]
    pub locked: Option<LockedJson<'a>>,
    pub waited_ms: u64,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostJson<'a> {
    pub task_id: &'a str,
    pub key: &'a str,
    pub status: TaskStatus,
    pub fence: Option<Fence>,
    pub end_reason: Option<EndReason>,
    pub expires_at: Option<Timestamp>,
    pub current: Option<HeldJson<'a>>,
}

pub fn details(error: &Error) -> ErrorDetails<'_> {
    match error {
        Error::Ambiguous { reference, candidates, more } => ErrorDetails::Ambiguous {
            reference,
            candidates: candidates.iter().map(task_name).collect(),
            more: *more,
        },
        Error::AmbiguousWork { reference, candidates } => {
            ErrorDetails::AmbiguousWork { reference, candidates }
        }
        Error::Unsupported { what } => ErrorDetails::Unsupported { what },
        Error::DependencyCycle { path } => ErrorDetails::Cycle { cycle: path },
        Error::InvalidTransition { task, .. } | Error::Changed { task } => {
            ErrorDetails::Transition { task_id: &task.id, status: task.status }
        }
        Error::NotReady { task, blocked_by } => ErrorDetails::NotReady { task_id: &task.id, blocked_by },
        Error::TaskNotFound { reference }
        | Error::LockNotFound { reference }
        | Error::JobNotFound { reference }
        | Error::SessionNotFound { reference, .. } => ErrorDetails::NotFound { reference },
        Error::SectionNotFound { name, similar } => ErrorDetails::SectionNotFound { section: name, similar },
        Error::AgentNotFound { id } => ErrorDetails::AgentNotFound { agent: id },
        Error::DefinitionChanged { what, changes } => ErrorDetails::DefinitionChanged { what, changes },
        Error::WorkLost { what } => ErrorDetails::WorkLost { resource: what },
        Error::PermissionDenied { path: Some(path), .. } => at(path),
        Error::NotInitialized { start, .. } => at(start),
        Error::Untrusted { root, .. } => at(root),
        Error::StoreTooNew { found, known } => ErrorDetails::StoreTooNew { found: *found, known: *known },
        Error::StoreMoved { other, is_complete: true } => ErrorDetails::MovedTo { moved_to: other },
        Error::StoreMoved { other, is_complete: false } => ErrorDetails::FilledFrom { filled_from: other },
        Error::NothingReady { reserved: Some(work), .. } => {
            ErrorDetails::Reserved { reserved: work.tasks, first: waiter(&work.first) }
        }
        Error::Locked(refusal) => ErrorDetails::Locked(Box::new(locked(refusal))),
        Error::StillHeld { lease, .. } => ErrorDetails::Held(held(lease)),
        Error::LeaseLost(loss) | Error::NotHolder(loss) => ErrorDetails::Lost(Box::new(lost(loss))),
        Error::WaitTimeout { waited, locked: refusal, .. } => ErrorDetails::Waited(Box::new(WaitedJson {
            locked: refusal.as_deref().map(locked),
            waited_ms: millis(*waited),
        })),
        _ => ErrorDetails::Nothing,
    }
}

fn at(path: &Path) -> ErrorDetails<'_> {
    ErrorDetails::Path { path: path.to_string_lossy() }
}

fn held(lease: &Lease) -> HeldJson<'_> {
    HeldJson {
        lease_id: &lease.id,
        locked_by: &lease.holder.id,
        holder: holder(lease),
        fence: lease.fence,
        acquired_at: lease.acquired_at,
        heartbeat_at: lease.heartbeat_at,
        expires_at: lease.expires_at,
    }
}

fn locked(locked: &Locked) -> LockedJson<'_> {
    let section_id = locked.resource.section_id();
    LockedJson {
        lease: locked.lease.as_ref().map(held),
        resource: locked.resource.to_string(),
        task_id: locked.task.as_ref().map(|task| task.id.as_str()),
        key: locked.task.as_ref().map(|task| task.key.as_str()),
        section: section_id.is_some().then_some(locked.name.as_str()),
        section_id,
        age_ms: millis(locked.age),
        queue: locked.queue,
        first: locked.first.as_deref().map(waiter),
    }
}

fn lost(lost: &Lost) -> LostJson<'_> {
    LostJson {
        task_id: &lost.task.id,
        key: &lost.task.key,
        status: lost.task.status,
        fence: lost.shown.or(lost.meant.as_ref().map(|lease| lease.fence)),
        end_reason: lost.meant.as_ref().and_then(|lease| lease.ended).map(|(_, reason)| reason),
        expires_at: lost.meant.as_ref().map(|lease| lease.expires_at),
        current: lost.current.as_ref().map(held),
    }
}
