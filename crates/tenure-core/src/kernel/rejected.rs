//! The record of a late write: a change or a renewal that was refused because its lease is lost.

use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::id::TaskId;
use crate::lease::EndReason;
use crate::store::{Durability, Store, Tx};

/// Returns the outcome of a write. If its lease is lost, that is recorded first, because the write's own transaction was rolled
/// back. If recording fails, the same refusal is returned.
pub fn recording_rejection<T>(store: &dyn Store, outcome: Result<T>) -> Result<T> {
    if let Err(error @ Error::LeaseLost(_)) = &outcome {
        drop(store.write(Durability::Process, |tx| record_rejection(tx, error)));
    }
    outcome
}

/// Appends the event, unless the task's last event is the same: a holder that tries again and again is recorded once. A lease
/// that its holder has ended itself is not lost, and other errors are not recorded.
pub fn record_rejection(tx: &mut dyn Tx, error: &Error) -> Result<()> {
    let Error::LeaseLost(lost) = error else { return Ok(()) };
    let Some(lease) = &lost.meant else { return Ok(()) };
    if matches!(lease.ended, Some((_, EndReason::Completed | EndReason::Released))) {
        return Ok(());
    }
    let (kind, task) = (EventKind::WriteRejected, TaskId::new(&lost.task.id));
    let last = tx.last_events(std::slice::from_ref(&task))?.pop();
    if last.is_some_and(|last| last.kind == kind && last.fence == Some(lease.fence)) {
        return Ok(());
    }
    tx.append(NewEvent::new(kind, &lease.holder.id).task(&task).fence(lease.fence))
}
