//! The statements of a grant.

use std::time::Duration;

use super::feed::SEE_AGENT;
use super::leases::{DELETE_TICKET, ENDING_ATTEMPTS, OPEN_LEASE};
use super::notes::{CHANGES, MESSAGES};
use super::{Dialect, columns};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventKind, NewEvent};
use crate::holder::Holder;
use crate::id::{Ids, LeaseId, RandomIds};
use crate::lease::Resource;
use crate::store::columns::{agents, events, leases};
use crate::store::feed::Agent;
use crate::store::leases::NewLease;

/// The statements that a grant of a task executes, so that a store can prepare them before its turn has come. The
/// `INSERT`s are built from sample rows, so that they equal those of a real grant.
pub fn grant_statements(dialect: Dialect) -> Result<Vec<String>> {
    let now = Timestamp::from_millis(0);
    let lease = NewLease {
        id: LeaseId::new(""),
        key: RandomIds.lease_key(),
        resource: Resource::ready(None),
        holder: Holder::agent(""),
        process: None,
        doorbell: None,
        ttl: Duration::ZERO,
        expires_at: now,
        claimed_from: None,
        messages_through: 0,
    };
    let agent = Agent {
        id: String::new(),
        name: None,
        capabilities: Vec::new(),
        joined_at: now,
        last_seen_at: now,
        left_at: None,
        active_claims: 0,
    };
    let event = NewEvent::new(EventKind::LeaseAcquired, "");
    let mut all = vec![
        dialect.insert(&leases::TABLE, columns(&lease.values(now)?)),
        dialect.insert(&events::TABLE, columns(&event.values(now)?)),
        dialect.upsert(&agents::TABLE, columns(&agent.values()?), &Agent::LASTING),
    ];
    let fixed = [&SEE_AGENT, &DELETE_TICKET, &OPEN_LEASE, &ENDING_ATTEMPTS, &MESSAGES, &CHANGES];
    all.extend(fixed.map(|statement| statement.text(dialect).to_owned()));
    Ok(all)
}
