//! Maps states that no decision can distinguish to one canonical state.
//!
//! This makes the state space finite without a limit on grants, tickets, evictions or time. Times are relative to a
//! constant `now`; all times in the distant past are equal. Fences and tickets are renumbered in order. All outdated
//! fences of a task are equivalent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tenure_core::Timestamp;
use tenure_core::event::EventKind;
use tenure_core::id::{Fence, LeaseId};
use tenure_core::lease::{EndReason, Lease, Resource};

use super::snapshot::{Snapshot, TICK, TICKET_LIFE, TTL};

/// The constant current time; all other times move instead.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(0).after(TICK * 100)
}

impl Snapshot {
    /// Advances the clock by a tick.
    pub(crate) fn tick(&mut self) {
        self.move_moments(|moment| moment.before(TICK));
    }

    /// Moves the clock back by the ttl of a lease.
    pub(crate) fn step_back(&mut self) {
        self.move_moments(|moment| moment.after(TTL));
    }

    /// Whether another step back keeps all times within bounds.
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
        // All expired times are equal. A step back of the clock may make them valid again.
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

    /// Keeps the latest lease of each resource, and one outdated fence per task if a holder still has one.
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
        // The feed is only used to recognise a repeated finish under the latest lease, so the last such event
        // suffices.
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
        // Fences are compared only within a resource, so their order across resources is irrelevant.
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
            // A removed ticket gets a number that no ticket has.
            if let Some((number, _)) = &mut belief.ticket {
                *number = new.get(number).copied().unwrap_or(0);
            }
        }
        self.rows.last_ticket = i64::try_from(new.len()).unwrap();
    }
}
