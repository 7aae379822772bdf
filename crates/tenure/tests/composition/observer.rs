//! Observes the store while the processes of a storm run: when each event appeared, when each lease was renewed, and the
//! queues.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::Result;
use tenure_core::event::{Event as StoredEvent, EventKind};
use tenure_core::holder::{Judge, Liveness, ThisMachine};
use tenure_core::id::Fence;
use tenure_core::lease::{Lease, Ticket as StoredTicket};
use tenure_core::store::{EventFilter, LeaseFilter, Store, View};

use crate::history::{Between, Event, Snapshot, Ticket, now};

/// On PostgreSQL two transactions may commit in another order than that of their events' numbers.
const OUT_OF_ORDER: i64 = 64;

#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) events: BTreeMap<i64, Event>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) beats: BTreeMap<i64, Vec<Between>>,
    pub(crate) alive: Vec<i64>,
    /// The last heartbeat of each lease and the last refresh of each ticket, as recorded.
    heartbeats: BTreeMap<i64, i64>,
    refreshes: BTreeMap<i64, (i64, i64)>,
    /// Every lease that was granted, as it was seen last. Retention may have removed it since.
    pub(crate) leases: BTreeMap<i64, Lease>,
}

/// Everything that one read transaction saw.
struct Seen {
    events: Vec<StoredEvent>,
    tickets: Vec<StoredTicket>,
    /// The open leases, and those that were granted and closed since the last read.
    leases: Vec<Lease>,
}

fn see(view: &dyn View, since: i64, known: &BTreeMap<i64, Event>) -> Result<Seen> {
    let filter = EventFilter { since, limit: u64::from(u32::MAX), ..EventFilter::default() };
    let mut events = view.events(&filter)?;
    events.retain(|event| !known.contains_key(&event.seq));
    let mut leases = view.leases(&LeaseFilter::default())?;
    for event in events.iter().filter(|event| event.kind == EventKind::LeaseEnded) {
        if let Some(fence) = event.fence {
            leases.extend(view.lease_by_fence(fence)?.filter(|lease| !lease.is_open()));
        }
    }
    Ok(Seen { events, tickets: view.all_tickets()?, leases })
}

/// Reads the store repeatedly until `stop` is set, and once more afterwards.
pub(crate) fn observe(store: &dyn Store, stop: &AtomicBool) -> Observed {
    let mut observed = Observed::default();
    let mut before = now();
    loop {
        let last = stop.load(Ordering::SeqCst);
        let begun = now();
        let since = observed.events.last_key_value().map_or(0, |(seq, _)| (seq - OUT_OF_ORDER).max(0));
        // Nothing can be read while a server is down.
        if let Ok(seen) = store.read(|view| see(view, since, &observed.events)) {
            observed.note(seen, Between { after: before, by: now() });
            before = begun;
        } else {
            assert!(!last, "the store cannot be read at the end");
        }
        if last {
            return observed;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

impl Observed {
    fn note(&mut self, seen: Seen, when: Between) {
        for lease in seen.leases {
            let (fence, beat) = (lease.fence.number(), lease.heartbeat_at.as_millis());
            if self.heartbeats.insert(fence, beat) != Some(beat) {
                self.beats.entry(fence).or_default().push(when);
            }
            self.leases.insert(fence, lease);
        }
        for event in &seen.events {
            let event = read(event, when);
            self.note_death(&event);
            self.events.insert(event.seq, event);
        }
        let tickets: Vec<Ticket> = seen.tickets.iter().map(|ticket| self.ticket(ticket, when)).collect();
        let seq = self.events.last_key_value().map_or(0, |(seq, _)| *seq);
        if self.snapshots.last().is_none_or(|last| last.seq != seq || last.tickets != tickets) {
            self.snapshots.push(Snapshot { at: when.by, seq, tickets });
        }
    }

    fn ticket(&mut self, ticket: &StoredTicket, when: Between) -> Ticket {
        let refreshed = ticket.refreshed_at.as_millis();
        let known = self.refreshes.get(&ticket.number).filter(|(at, _)| *at == refreshed);
        let refreshed_after = known.map_or(when.after, |(_, after)| *after);
        self.refreshes.insert(ticket.number, (refreshed, refreshed_after));
        Ticket {
            number: ticket.number,
            resource: ticket.resource.to_string(),
            pid: ticket.process.process.pid,
            refreshed_after,
        }
    }

    /// Checks at once whether a process that was declared dead really is.
    fn note_death(&mut self, event: &Event) {
        let dead = event.is("lease.ended") && event.reason.as_deref() == Some("holder_died");
        // The lease of a section ends with the reason of its last task.
        let own = event.resource.as_deref().is_some_and(|resource| !resource.starts_with("section:"));
        let Some(fence) = event.fence.filter(|_| dead && own) else { return };
        let process = self.leases.get(&fence).and_then(|lease| lease.process.as_ref());
        if process.is_some_and(|process| ThisMachine.liveness(process) == Liveness::Alive) {
            self.alive.push(fence);
        }
    }
}

fn read(event: &StoredEvent, committed: Between) -> Event {
    let text = |name: &str| event.detail[name].as_str().map(str::to_owned);
    Event {
        seq: event.seq,
        committed,
        recorded: event.at.as_millis(),
        kind: event.kind.as_str().to_owned(),
        actor: event.actor.clone(),
        task: event.task.as_ref().map(ToString::to_string),
        from: event.from.map(|status| status.to_string()),
        to: event.to.map(|status| status.to_string()),
        fence: event.fence.map(Fence::number),
        resource: text("resource"),
        reason: text("reason"),
        attempt: text("attempt"),
    }
}
