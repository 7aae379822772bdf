//! Leases as text.

use crate::clock::Timestamp;
use crate::duration::format_rounded;
use crate::error::Result;
use crate::holder::Judge;
use crate::lease::{Lease, LeaseState, Resource};
use crate::row_names::RowNames;
use crate::store::View;

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
    let mut names = RowNames::default();
    names.learn_resources(view, std::iter::once(resource))?;
    Ok(names.resource(resource))
}

/// `agent A1` or `runner f47ac10b-… (pid 123 on host)`.
pub fn holder(lease: &Lease) -> String {
    match &lease.process {
        Some(process) => format!("{} (pid {} on {})", lease.holder, process.process.pid, process.hostname),
        None => lease.holder.to_string(),
    }
}
