//! Observes the queues while the processes of a test run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::store::EventFilter;
use tenure_core::{Clock, SystemClock};

use crate::harness::Project;
use crate::history::{Snapshot, Ticket};

pub(crate) fn now() -> i64 {
    SystemClock.now().as_millis()
}

/// Reads all queues repeatedly until `stop` is set, and keeps each snapshot that differs from the previous one.
pub(crate) fn watch(project: &Project, stop: &AtomicBool) -> Vec<Snapshot> {
    let store = project.store();
    let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
    let mut snapshots: Vec<Snapshot> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let snapshot = store.read(|view| {
            let seq = view.events(&last)?.first().map_or(0, |event| event.seq);
            let tickets = view.all_tickets()?.into_iter().map(|ticket| Ticket {
                number: ticket.number,
                resource: ticket.resource.to_string(),
                holder: ticket.holder.id,
                pid: ticket.process.process.pid,
                refreshed: ticket.refreshed_at.as_millis(),
            });
            Ok((seq, tickets.collect::<Vec<Ticket>>()))
        });
        // Nothing can be read while a server is down.
        let Ok((seq, tickets)) = snapshot else { continue };
        if snapshots.last().is_none_or(|last| last.seq != seq || last.tickets != tickets) {
            snapshots.push(Snapshot { at: now(), seq, tickets });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    snapshots
}

/// Stops the watcher even if the storm fails; otherwise the test would hang instead of reporting the failure.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
