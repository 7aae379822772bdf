//! Leases as text.

use tenure_core::Timestamp;
use tenure_core::duration::format_rounded;
use tenure_core::holder::Judge;
use tenure_core::lease::{Lease, LeaseState, Resource};
use tenure_core::store::View;

use crate::short_id::ShortIds;

/// The lease's state: `10m remaining`, `expired 5m ago` and so on.
pub(crate) fn remaining(lease: &Lease, now: Timestamp, judge: &dyn Judge) -> String {
    match lease.state(now, judge) {
        LeaseState::Live => format!("{} remaining", format_rounded(lease.expires_at.since(now))),
        LeaseState::Expired => format!("expired {} ago", format_rounded(now.since(lease.expires_at))),
        LeaseState::HolderDead => "its process is dead".to_owned(),
        LeaseState::Ended(reason) => reason.as_str().replace('_', " "),
    }
}

/// A task's key or `section:NAME`.
pub(crate) fn resource_name(view: &dyn View, resource: &Resource) -> tenure_core::Result<String> {
    if let Some(section) = resource.section_id()
        && let Some(section) = view.section(&section)?
    {
        return Ok(format!("section:{}", section.name));
    }
    if resource.task_id().is_some() {
        let found = view.find_tasks(tenure_core::store::TaskLookup::Id(&resource.id), 1)?;
        if let Some(task) = found.into_iter().next() {
            return Ok(task.key);
        }
    }
    Ok(resource.to_string())
}

/// `agent A1` or `runner f47ac10b`.
pub(crate) fn short_holder(lease: &Lease, ids: ShortIds) -> String {
    format!("{} {}", lease.holder.kind.as_str(), ids.show(&lease.holder.id))
}

/// `agent A1` or `runner f47ac10b-… (pid 123 on host)`.
pub(crate) fn holder(lease: &Lease) -> String {
    match &lease.process {
        Some(process) => format!("{} (pid {} on {})", lease.holder, process.process.pid, process.hostname),
        None => lease.holder.to_string(),
    }
}
