//! Leases as text.

pub(crate) use tenure_core::why::{remaining, resource_name};

use tenure_core::lease::Lease;

use tenure_core::short_id::ShortIds;

/// `agent A1` or `runner f47ac10b (pid 123 on host)`.
pub(crate) fn holder(lease: &Lease) -> String {
    let name = holder_name(lease);
    match &lease.process {
        Some(process) => format!("{name} (pid {} on {})", process.process.pid, process.hostname),
        None => name,
    }
}

/// `agent A1` or `runner f47ac10b`.
pub(crate) fn holder_name(lease: &Lease) -> String {
    short_holder(lease, ShortIds::of([]))
}

/// `agent A1` or `runner f47ac10b`, long enough to differ from the other ids in a list.
pub(crate) fn short_holder(lease: &Lease, ids: ShortIds) -> String {
    format!("{} {}", lease.holder.kind.as_str(), ids.show(&lease.holder.id))
}
