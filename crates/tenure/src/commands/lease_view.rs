//! Leases as text.

pub(crate) use tenure_core::why::{holder, remaining, resource_name};

use tenure_core::lease::Lease;

use crate::short_id::ShortIds;

/// `agent A1` or `runner f47ac10b`.
pub(crate) fn short_holder(lease: &Lease, ids: ShortIds) -> String {
    format!("{} {}", lease.holder.kind.as_str(), ids.show(&lease.holder.id))
}
