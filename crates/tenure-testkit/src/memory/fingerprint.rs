//! A hash of the rows that decisions about tasks read, so that two states with the same hash lead to the same
//! decisions.
//!
//! Jobs, sessions and runners are not part of it. Neither is the feed: of all decisions only a repeated finish reads
//! it, and with it no two histories that lead to the same rows would have the same hash.

use std::hash::{Hash, Hasher};

use tenure_core::lease::{Attempt, Lease, Ticket};

use super::state::State;

impl Hash for State {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.tasks.hash(to);
        for (id, section) in &self.sections {
            (id, &section.name, section.mode.as_str(), section.priority, section.position).hash(to);
        }
        self.task_deps.hash(to);
        self.section_deps.hash(to);
        self.leases.values().for_each(|lease| hash_lease(lease, to));
        self.tickets.values().for_each(|ticket| hash_ticket(ticket, to));
        self.attempts.iter().for_each(|attempt| hash_attempt(attempt, to));
        self.messages.hash(to);
        self.agents.keys().for_each(|agent| agent.hash(to));
        (self.last_fence, self.last_ticket, self.last_message, self.last_task_number).hash(to);
    }
}

fn hash_lease<H: Hasher>(lease: &Lease, to: &mut H) {
    (lease.fence, &lease.resource, &lease.holder, &lease.process, &lease.doorbell).hash(to);
    (lease.ttl, lease.acquired_at, lease.heartbeat_at, lease.expires_at, lease.claimed_from).hash(to);
    lease.messages_through.hash(to);
    lease.ended.map(|(at, reason)| (at, reason.as_str())).hash(to);
}

fn hash_ticket<H: Hasher>(ticket: &Ticket, to: &mut H) {
    (ticket.number, &ticket.resource, &ticket.holder, &ticket.process, &ticket.doorbell).hash(to);
    (ticket.created_at, ticket.refreshed_at, ticket.life, ticket.review).hash(to);
}

fn hash_attempt<H: Hasher>(attempt: &Attempt, to: &mut H) {
    (&attempt.id, &attempt.resource, attempt.fence, attempt.state.as_str(), &attempt.owner).hash(to);
    (&attempt.leader, attempt.started_at, attempt.ended_at, attempt.exit_code, &attempt.reason).hash(to);
    attempt.charged.hash(to);
}
