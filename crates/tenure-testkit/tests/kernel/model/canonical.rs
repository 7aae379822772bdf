//! States that differ only in what no decision asks for are one state.
//!
//! That makes the space finite without a limit on grants, tickets, forces or time. Moments are kept relative to now, which
//! never moves; those long past are all alike. Fences and tickets are numbered anew in their order. A credential that is
//! not of the latest grant is as good as any other such one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tenure_core::Timestamp;
use tenure_core::event::EventKind;
use tenure_core::id::{Fence, LeaseId};
use tenure_core::lease::{EndReason, Lease, Resource};

use super::snapshot::{Snapshot, TICK, TICKET_LIFE, TTL};

/// It is always this time; what lies before and after moves instead.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(0).after(TICK * 100)
}

impl Snapshot {
    /// As if the clock had gone on by a tick.
    pub(crate) fn tick(&mut self) {
        self.move_moments(|moment| moment.before(TICK));
    }

    /// As if the clock had been put back by the whole life of a lease.
    pub(crate) fn step_back(&mut self) {
        self.move_moments(|moment| moment.after(TTL));
    }

    /// No moment lies so far ahead that another step back would make it endless.
    pub(crate) fn may_step_back(&self) -> bool {
        let limit = now().after(TTL);
        self.rows.leases.values().filter(|lease| lease.is_open()).all(|lease| lease.expires_at <= limit)
    }

    fn move_moments(&mut self, moved: impl Fn(Timestamp) -> Timestamp) {
        for lease in self.rows.leases.values_mut().filter(|lease| lease.is_open()) {
            lease.expires_at = moved(lease.expires_at);
        }
        for ticket in self.rows.tickets.values_mut() {
            ticket.refreshed_at = moved(ticket.refreshed_at);
        }
    }

    pub(crate) fn canonical(mut self) -> Self {
        self.forget_moments();
        self.forget_leases();
        self.number_fences();
        self.number_tickets();
        self
    }

    fn forget_moments(&mut self) {
        let zero = Timestamp::from_millis(0);
        // What is over is over, however long ago; a step back of the clock may bring it back all the same.
        let (expired, silent) = (now(), now().before(TICKET_LIFE));
        for lease in self.rows.leases.values_mut() {
            lease.acquired_at = zero;
            lease.heartbeat_at = zero;
            lease.expires_at = lease.expires_at.max(expired);
            if let Some((at, _)) = &mut lease.ended {
                *at = zero;
                lease.expires_at = zero;
            }
        }
        for ticket in self.rows.tickets.values_mut() {
            ticket.created_at = zero;
            ticket.refreshed_at = ticket.refreshed_at.clamp(silent, now());
        }
        self.rows.tasks.values_mut().for_each(|task| {
            task.created_at = zero;
            task.updated_at = zero;
        });
        self.rows.sections.values_mut().for_each(|section| {
            section.created_at = zero;
            section.updated_at = zero;
        });
    }

    fn latest(&self) -> HashMap<Resource, Fence> {
        let of = |lease: &Lease| (lease.resource.clone(), lease.fence);
        self.rows.leases.values().map(of).collect()
    }

    /// Keeps the latest grant of each resource, and one stale credential of each task that somebody still has one of.
    fn forget_leases(&mut self) {
        let latest = self.latest();
        let tasks: Vec<_> = self.rows.tasks.keys().cloned().collect();
        let mut kept: BTreeSet<Fence> = latest.values().copied().collect();
        for (at, id) in tasks.iter().enumerate() {
            let newest = latest.get(&Resource::task(id)).copied();
            let stale = |belief: &Option<Fence>| belief.is_some() && *belief != newest;
            let Some(oldest) = self.beliefs.iter().map(|b| b.fences[at]).filter(stale).min().flatten() else {
                continue;
            };
            for belief in self.beliefs.iter_mut().filter(|b| stale(&b.fences[at])) {
                belief.fences[at] = Some(oldest);
            }
            kept.insert(oldest);
        }
        self.rows.leases.retain(|fence, _| kept.contains(fence));
        for lease in self.rows.leases.values_mut() {
            if latest.get(&lease.resource) != Some(&lease.fence) {
                lease.ended = Some((Timestamp::from_millis(0), EndReason::Expired));
                lease.process = None;
                lease.doorbell = None;
            }
        }
        // The feed serves only to recognise what was said under the latest grant, and the last such word is enough.
        let rows = &mut self.rows;
        let mut last = BTreeMap::new();
        for event in rows.events.drain(..).filter(|event| event.kind == EventKind::TaskStatus) {
            last.insert(event.task.clone(), event);
        }
        rows.events = last.into_values().collect();
        rows.events.iter_mut().for_each(|event| event.seq = 0);
        rows.events.iter_mut().for_each(|event| event.at = Timestamp::from_millis(0));
        rows.last_event = 0;
    }

    fn number_fences(&mut self) {
        // Fences are compared within a resource only, so the order between resources is no difference either.
        let key = |lease: &Lease| (lease.resource.kind.as_str(), lease.resource.id.clone(), lease.fence);
        let mut order: Vec<_> = self.rows.leases.values().map(key).collect();
        order.sort();
        let new: BTreeMap<Fence, Fence> =
            order.into_iter().map(|(_, _, fence)| fence).zip((1..).map(Fence::new)).collect();
        let leases = std::mem::take(&mut self.rows.leases);
        for (old, mut lease) in leases {
            lease.fence = new[&old];
            lease.id = LeaseId::new(format!("L{:08X}", lease.fence.number()));
            self.rows.leases.insert(lease.fence, lease);
        }
        for fence in self.beliefs.iter_mut().flat_map(|belief| &mut belief.fences) {
            *fence = fence.and_then(|old| new.get(&old).copied());
        }
        for event in &mut self.rows.events {
            event.fence = event.fence.and_then(|old| new.get(&old).copied());
        }
        self.rows.last_fence = i64::try_from(new.len()).unwrap();
    }

    fn number_tickets(&mut self) {
        let new: BTreeMap<i64, i64> = self.rows.tickets.keys().copied().zip(1..).collect();
        let tickets = std::mem::take(&mut self.rows.tickets);
        for (old, mut ticket) in tickets {
            ticket.number = new[&old];
            self.rows.tickets.insert(ticket.number, ticket);
        }
        for belief in &mut self.beliefs {
            // A ticket that is gone has a number that nobody has.
            if let Some((number, _)) = &mut belief.ticket {
                *number = new.get(number).copied().unwrap_or(0);
            }
        }
        self.rows.last_ticket = i64::try_from(new.len()).unwrap();
    }
}
