//! Rows of leases, tickets and attempts.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::holder::{Holder, Incarnation};
use crate::id::{AttemptId, Fence, LeaseId, SectionId};
use crate::lease::{Attempt, AttemptState, EndReason, Lease, Resource, ResourceKind, Ticket};
use crate::task::TaskStatus;

#[derive(Debug, Clone, Default)]
pub struct LeaseFilter {
    pub kinds: Option<Vec<ResourceKind>>,
    pub resource: Option<Resource>,
    pub holder: Option<Holder>,
    pub include_ended: bool,
    /// Newest first if set, else by fence.
    pub newest_first: bool,
    pub limit: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct NewLease {
    pub id: LeaseId,
    pub resource: Resource,
    pub holder: Holder,
    pub process: Option<Incarnation>,
    pub doorbell: Option<String>,
    pub ttl: Duration,
    pub expires_at: Timestamp,
    pub claimed_from: Option<TaskStatus>,
}

impl NewLease {
    /// The lease as it is stored under this fence: times are whole milliseconds.
    pub fn granted(&self, fence: Fence, now: Timestamp) -> Lease {
        Lease {
            fence,
            id: self.id.clone(),
            resource: self.resource.clone(),
            holder: self.holder.clone(),
            process: self.process.clone(),
            doorbell: self.doorbell.clone(),
            ttl: Duration::from_millis(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)),
            acquired_at: now,
            heartbeat_at: now,
            expires_at: self.expires_at,
            claimed_from: self.claimed_from,
            ended: None,
        }
    }
}

/// The part of a lease that a heartbeat writes.
#[derive(Debug, Clone)]
pub struct LeaseBeat {
    pub process: Option<Incarnation>,
    pub doorbell: Option<String>,
    pub ttl: Duration,
    pub heartbeat_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewTicket {
    pub resource: Resource,
    pub holder: Holder,
    pub process: Incarnation,
    pub doorbell: Option<String>,
}

pub trait ReadLeases {
    /// Distinct processes recorded in open leases and in tickets.
    fn recorded_processes(&self) -> Result<Vec<Incarnation>>;
    fn open_lease(&self, resource: &Resource) -> Result<Option<Lease>>;
    fn latest_lease(&self, resource: &Resource) -> Result<Option<Lease>>;
    fn lease_by_id(&self, id: &str) -> Result<Option<Lease>>;
    fn lease_by_fence(&self, fence: Fence) -> Result<Option<Lease>>;
    fn leases(&self, filter: &LeaseFilter) -> Result<Vec<Lease>>;
    /// The open task leases of `holder` in a section.
    fn task_leases_in_section(&self, section: &SectionId, holder: &Holder) -> Result<Vec<Lease>>;
    /// In the order in which they came.
    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>>;
    /// The queue for ready work, whatever the section ([`Resource::is_ready_work`]), in the order of arrival.
    fn ready_tickets(&self) -> Result<Vec<Ticket>>;
    fn count_tickets(&self) -> Result<u64>;
    fn all_tickets(&self) -> Result<Vec<Ticket>>;
    /// Newest first.
    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>>;
    /// The attempts of `resource` that are `ending`: their lease is over, and their processes may still run.
    fn ending_attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        let mut attempts = self.attempts(resource)?;
        attempts.retain(|attempt| attempt.state == AttemptState::Ending);
        Ok(attempts)
    }
    /// Every attempt that is not over.
    fn open_attempts(&self) -> Result<Vec<Attempt>>;
}

pub trait WriteLeases {
    /// Grants a lease, with a fence greater than every earlier one. `None` if another lease has its id. A store that finds this
    /// out only at the commit runs the transaction again, which draws another.
    fn grant(&mut self, lease: &NewLease) -> Result<Option<Lease>>;
    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()>;
    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()>;
    /// Reopens a lease that ended as expired.
    fn reopen_lease(&mut self, fence: Fence) -> Result<()>;
    fn insert_ticket(&mut self, ticket: &NewTicket) -> Result<i64>;
    /// Refreshes a ticket. False if it is gone, or was last refreshed at `silent_since` or before.
    fn refresh_ticket(&mut self, number: i64, silent_since: Timestamp) -> Result<bool>;
    fn delete_ticket(&mut self, number: i64) -> Result<()>;
    fn insert_attempt(&mut self, attempt: &Attempt) -> Result<()>;
    fn update_attempt(&mut self, id: &AttemptId, attempt: &Attempt) -> Result<()>;
    /// Rings a doorbell after the commit, and only then. A hint, never a promise.
    fn ring(&mut self, doorbell: &str);
}
