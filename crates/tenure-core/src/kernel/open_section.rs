//! Opening a serial section to several holders.

use super::end::close;
use crate::error::Result;
use crate::id::SectionId;
use crate::lease::{EndReason, Resource};
use crate::store::Tx;

/// Ends the section's lease because the section becomes parallel. The leases of its tasks stay as they are. The caller
/// changes the mode in the same transaction, and wakes waiters afterwards.
pub(crate) fn open_section(tx: &mut dyn Tx, id: &SectionId, actor: &str) -> Result<()> {
    if let Some(lease) = tx.open_lease(&Resource::section(id))? {
        close(tx, &lease, EndReason::Released, Some("the section is parallel now"), actor, false)?;
    }
    Ok(())
}
