//! Looks at who stands in line, beside everything else that happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::store::EventFilter;
use tenure_core::{Clock, SystemClock};

use crate::harness::Project;
use crate::history::{Look, Place};

pub(crate) fn now() -> i64 {
    SystemClock.now().as_millis()
}

/// Looks at the lines again and again until told to stop, and keeps each look that saw something new.
pub(crate) fn watch(project: &Project, stop: &AtomicBool) -> Vec<Look> {
    let store = project.store();
    let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
    let mut looks: Vec<Look> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let look = store.read(|view| {
            let seq = view.events(&last)?.first().map_or(0, |event| event.seq);
            let tickets = view.all_tickets()?.into_iter().map(|ticket| Place {
                number: ticket.number,
                resource: ticket.resource.to_string(),
                holder: ticket.holder.id,
                pid: ticket.process.process.pid,
                refreshed: ticket.refreshed_at.as_millis(),
            });
            Ok((seq, tickets.collect::<Vec<Place>>()))
        });
        // A server that is down for the moment shows nothing.
        let Ok((seq, places)) = look else { continue };
        if looks.last().is_none_or(|last| last.seq != seq || last.places != places) {
            looks.push(Look { at: now(), seq, places });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    looks
}

/// Ends the watching also when the storm fails, or the failure would never be heard.
pub(crate) struct Enough<'a>(pub(crate) &'a AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
