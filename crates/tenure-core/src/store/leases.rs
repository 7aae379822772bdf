//! Rows of leases, tickets and attempts.

use std::time::Duration;

use super::columns::{Table, attempts, leases, tickets};
use super::rows::{Reader, Record, Row, Values, json, millis};
use crate::clock::Timestamp;
use crate::ending::{Ending, Usage};
use crate::error::Result;
use crate::holder::{Holder, Incarnation};
use crate::id::{AttemptId, Fence, LeaseId, LeaseKey, LeaseProof, SectionId, TaskId};
use crate::lease::{AgentRun, Attempt, AttemptState, EndReason, Lease, Resource, ResourceKind, Ticket};
use crate::task::TaskStatus;

#[derive(Debug, Clone, Default)]
pub struct LeaseFilter {
    pub kinds: Option<Vec<ResourceKind>>,
    pub resource: Option<Resource>,
    pub holder: Option<Holder>,
    pub include_ended: bool,
    /// Instead of the open leases, those that ended as expired at this time or later.
    pub expired_since: Option<Timestamp>,
    /// Newest first if true, otherwise in the order of fences.
    pub newest_first: bool,
    pub limit: Option<u64>,
}

/// What an agent has used in one attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptUsage {
    /// The task's key; its id if it was deleted.
    pub task: String,
    pub agent: String,
    pub ended_at: Timestamp,
    pub usage: Usage,
}

#[derive(Debug, Clone)]
pub struct NewLease {
    pub id: LeaseId,
    pub key: LeaseKey,
    pub resource: Resource,
    pub holder: Holder,
    pub process: Option<Incarnation>,
    pub doorbell: Option<String>,
    pub ttl: Duration,
    pub expires_at: Timestamp,
    pub claimed_from: Option<TaskStatus>,
    /// See [`Lease::messages_through`].
    pub messages_through: i64,
}

impl NewLease {
    pub fn proof(&self) -> LeaseProof {
        LeaseProof { lease: self.id.clone(), key: self.key.clone() }
    }

    /// The lease as it is stored under this fence: times are whole milliseconds.
    pub fn granted(&self, fence: Fence, now: Timestamp) -> Lease {
        Lease {
            fence,
            id: self.id.clone(),
            key_hash: self.proof().hash(),
            resource: self.resource.clone(),
            holder: self.holder.clone(),
            process: self.process.clone(),
            doorbell: self.doorbell.clone(),
            ttl: Duration::from_millis(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)),
            acquired_at: now,
            heartbeat_at: now,
            expires_at: self.expires_at,
            claimed_from: self.claimed_from,
            messages_through: self.messages_through,
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
    pub life: Duration,
    pub review: bool,
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
    /// In the order of arrival.
    fn tickets(&self, resource: &Resource) -> Result<Vec<Ticket>>;
    /// All tickets for tasks ([`Resource::is_work`]), in the order of arrival.
    fn work_tickets(&self) -> Result<Vec<Ticket>>;
    fn count_tickets(&self) -> Result<u64>;
    fn all_tickets(&self) -> Result<Vec<Ticket>>;
    /// Newest first.
    fn attempts(&self, resource: &Resource) -> Result<Vec<Attempt>>;
    /// The attempts at all of these tasks, newest first.
    fn attempts_at(&self, tasks: &[TaskId]) -> Result<Vec<Attempt>>;
    /// The attempts of `resource` that are `ending`: their lease is over, and their processes may still run.
    fn ending_attempts(&self, resource: &Resource) -> Result<Vec<Attempt>> {
        let mut attempts = self.attempts(resource)?;
        attempts.retain(|attempt| attempt.state == AttemptState::Ending);
        Ok(attempts)
    }
    /// Every attempt that has not ended.
    fn open_attempts(&self) -> Result<Vec<Attempt>>;
    /// What agents have used in attempts that ended at or after `since`, in the order of their ends.
    fn usage_since(&self, since: Timestamp) -> Result<Vec<AttemptUsage>>;
}

pub trait WriteLeases {
    /// Grants a lease, with a fence greater than every earlier one. `None` if another lease has the same id. A store
    /// that detects this only at the commit runs the transaction again, which draws another id.
    fn grant(&mut self, lease: &NewLease) -> Result<Option<Lease>>;
    fn beat(&mut self, fence: Fence, beat: &LeaseBeat) -> Result<()>;
    /// Records that the holder was shown the messages on its task up to this number.
    fn set_messages_through(&mut self, fence: Fence, number: i64) -> Result<()>;
    fn end_lease(&mut self, fence: Fence, reason: EndReason) -> Result<()>;
    /// Reopens a lease that ended as expired.
    fn reopen_lease(&mut self, fence: Fence) -> Result<()>;
    fn insert_ticket(&mut self, ticket: &NewTicket) -> Result<i64>;
    /// Refreshes a ticket. False if it is gone, or was not refreshed within its life.
    fn refresh_ticket(&mut self, number: i64) -> Result<bool>;
    fn delete_ticket(&mut self, number: i64) -> Result<()>;
    fn insert_attempt(&mut self, attempt: &Attempt) -> Result<()>;
    fn update_attempt(&mut self, id: &AttemptId, attempt: &Attempt) -> Result<()>;
    /// Rings a doorbell after the commit, and only then. A hint, never a promise.
    fn ring(&mut self, doorbell: &str);
}

impl Record for Lease {
    const TABLE: &'static Table = &leases::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        let reason = row.optional_parsed(leases::end_reason, EndReason::parse)?;
        Ok(Self {
            id: LeaseId::new(row.text(leases::lease_id)?),
            fence: Fence::new(row.int(leases::fence)?),
            key_hash: row.string(leases::key_hash)?,
            resource: row.resource(leases::resource_kind, leases::resource_id)?,
            holder: row.holder(leases::holder_kind, leases::holder_id)?,
            process: row.optional_json(leases::process)?,
            doorbell: row.optional_string(leases::doorbell)?,
            ttl: Duration::from_millis(row.narrow(leases::ttl_ms)?),
            acquired_at: row.time(leases::acquired_at)?,
            heartbeat_at: row.time(leases::heartbeat_at)?,
            expires_at: row.time(leases::expires_at)?,
            claimed_from: row.optional_parsed(leases::claimed_from, TaskStatus::parse)?,
            messages_through: row.int(leases::messages_through)?,
            ended: row.optional_time(leases::ended_at)?.zip(reason),
        })
    }
}

impl Lease {
    /// Reads a lease from an outer join, with its columns from position `first` on. `None` if the join found no lease,
    /// which shows in the fence being null.
    pub fn read_joined(row: &dyn Row, first: usize) -> Result<Option<Self>> {
        match row.int(first + leases::fence.at)? {
            Some(_) => Self::load(row, first).map(Some),
            None => Ok(None),
        }
    }
}

impl NewLease {
    /// All columns but the fence, which the store draws.
    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        Ok(vec![
            (leases::lease_id, self.id.as_str().into()),
            (leases::key_hash, self.proof().hash().into()),
            (leases::resource_kind, self.resource.kind.as_str().into()),
            (leases::resource_id, (&self.resource.id).into()),
            (leases::holder_kind, self.holder.kind.as_str().into()),
            (leases::holder_id, (&self.holder.id).into()),
            (leases::process, self.process.as_ref().map(json).transpose()?.into()),
            (leases::doorbell, self.doorbell.as_ref().into()),
            (leases::ttl_ms, millis(self.ttl).into()),
            (leases::acquired_at, now.into()),
            (leases::heartbeat_at, now.into()),
            (leases::expires_at, self.expires_at.into()),
            (leases::claimed_from, self.claimed_from.map(TaskStatus::as_str).into()),
            (leases::messages_through, self.messages_through.into()),
        ])
    }
}

impl LeaseBeat {
    pub fn values(&self) -> Result<Values<'_>> {
        Ok(vec![
            (leases::process, self.process.as_ref().map(json).transpose()?.into()),
            (leases::doorbell, self.doorbell.as_ref().into()),
            (leases::ttl_ms, millis(self.ttl).into()),
            (leases::heartbeat_at, self.heartbeat_at.into()),
            (leases::expires_at, self.expires_at.into()),
        ])
    }
}

impl Record for Ticket {
    const TABLE: &'static Table = &tickets::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            number: row.int(tickets::number)?,
            resource: row.resource(tickets::resource_kind, tickets::resource_id)?,
            holder: row.holder(tickets::holder_kind, tickets::holder_id)?,
            process: row.json(tickets::process)?,
            doorbell: row.optional_string(tickets::doorbell)?,
            created_at: row.time(tickets::created_at)?,
            refreshed_at: row.time(tickets::refreshed_at)?,
            life: Duration::from_millis(row.narrow(tickets::life_ms)?),
            review: row.flag(tickets::review)?,
        })
    }
}

impl NewTicket {
    /// All columns but the number, which the store draws.
    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        Ok(vec![
            (tickets::resource_kind, self.resource.kind.as_str().into()),
            (tickets::resource_id, (&self.resource.id).into()),
            (tickets::holder_kind, self.holder.kind.as_str().into()),
            (tickets::holder_id, (&self.holder.id).into()),
            (tickets::process, json(&self.process)?.into()),
            (tickets::doorbell, self.doorbell.as_ref().into()),
            (tickets::created_at, now.into()),
            (tickets::refreshed_at, now.into()),
            (tickets::life_ms, millis(self.life).into()),
            (tickets::review, self.review.into()),
        ])
    }
}

impl Record for Attempt {
    const TABLE: &'static Table = &attempts::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            id: AttemptId::new(row.text(attempts::id)?),
            resource: row.resource(attempts::resource_kind, attempts::resource_id)?,
            fence: Fence::new(row.int(attempts::fence)?),
            state: row.parsed(attempts::state, AttemptState::parse)?,
            owner: row.json(attempts::owner)?,
            leader: row.optional_json(attempts::leader)?,
            log_path: row.optional_string(attempts::log_path)?,
            agent: row.optional_string(attempts::agent)?,
            started_at: row.time(attempts::started_at)?,
            ended_at: row.optional_time(attempts::ended_at)?,
            exit_code: row.optional_narrow(attempts::exit_code)?,
            reason: row.optional_string(attempts::reason)?,
            charged: row.flag(attempts::charged)?,
            outcome_hash: row.optional_string(attempts::outcome_hash)?,
            quick_return: row.flag(attempts::quick_return)?,
            run: read_run(row)?,
        })
    }
}

fn read_run(row: Reader<'_>) -> Result<Option<AgentRun>> {
    let Some(ending) = row.optional_parsed(attempts::ending, Ending::parse)? else { return Ok(None) };
    Ok(Some(AgentRun {
        ending,
        conversation: row.optional_string(attempts::conversation)?,
        final_message: row.optional_string(attempts::final_message)?,
        usage: row.optional_json(attempts::usage)?,
    }))
}

impl Attempt {
    pub fn values(&self) -> Result<Values<'_>> {
        let mut all: Values<'_> = vec![
            (attempts::id, self.id.as_str().into()),
            (attempts::resource_kind, self.resource.kind.as_str().into()),
            (attempts::resource_id, (&self.resource.id).into()),
            (attempts::fence, self.fence.number().into()),
            (attempts::owner, json(&self.owner)?.into()),
            (attempts::agent, self.agent.as_ref().into()),
            (attempts::started_at, self.started_at.into()),
            (attempts::outcome_hash, self.outcome_hash.as_ref().into()),
        ];
        all.extend(self.progress()?);
        Ok(all)
    }

    /// The columns that change after the attempt was inserted.
    pub fn progress(&self) -> Result<Values<'_>> {
        let run = self.run.as_ref();
        Ok(vec![
            (attempts::state, self.state.as_str().into()),
            (attempts::leader, self.leader.as_ref().map(json).transpose()?.into()),
            (attempts::log_path, self.log_path.as_ref().into()),
            (attempts::ended_at, self.ended_at.into()),
            (attempts::exit_code, self.exit_code.into()),
            (attempts::reason, self.reason.as_ref().into()),
            (attempts::charged, self.charged.into()),
            (attempts::quick_return, self.quick_return.into()),
            (attempts::ending, run.map(|run| run.ending.as_str()).into()),
            (attempts::conversation, run.and_then(|run| run.conversation.as_ref()).into()),
            (attempts::final_message, run.and_then(|run| run.final_message.as_ref()).into()),
            (attempts::usage, run.and_then(|run| run.usage.as_ref()).map(json).transpose()?.into()),
        ])
    }
}
