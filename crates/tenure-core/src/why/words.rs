//! Leases as text.

use crate::clock::Timestamp;
use crate::duration::format_rounded;
use crate::error::Result;
use crate::holder::Judge;
use crate::lease::{Lease, LeaseState, Resource};
use crate::store::{TaskLookup, View};

/// The lease's state: `10m remaining`, `expired 5m ago` and so on.
pub fn remaining(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> String {
    match lease.state(now, judge) {
        LeaseState::Live => format!("{} remaining", format_rounded(lease.expires_at.since(now))),
        LeaseState::Expired => format!("expired {} ago", format_rounded(now.since(lease.expires_at))),
        LeaseState::HolderDead => "its process is dead".to_owned(),
        LeaseState::Ended(reason) => reason.as_str().replace('_', " "),
    }
}

/// A task's key or `section:NAME`.
pub fn resource_name(view: &dyn View, resource: &Resource) -> Result<String> {
    if let Some(section) = resource.section_id()
        && let Some(section) = view.section(&section)?
    {
        return Ok(format!("section:{}", section.name));
    }
    if resource.task_id().is_some() {
        let found = view.find_tasks(TaskLookup::Id(&resource.id), 1)?;
        if let Some(task) = found.into_iter().next() {
            return Ok(task.key);
        }
    }
    Ok(resource.to_string())
}

/// `agent A1` or `runner f47ac10b-… (pid 123 on host)`.
pub fn holder(lease: &Lease) -> String {
    match &lease.process {
        Some(process) => format!("{} (pid {} on {})", lease.holder, process.process.pid, process.hostname),
        None => lease.holder.to_string(),
    }
}
