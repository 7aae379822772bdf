//! Rows of agents, messages and events.

use super::columns::{Column, Table, agents, events, messages, tasks};
use super::notes::TaskNotes;
use super::rows::{Reader, Record, Row, Values, json};
use super::tasks::read_name;
use crate::clock::Timestamp;
use crate::error::{Result, TaskName};
use crate::event::{Event, EventKind, NewEvent};
use crate::id::{Fence, TaskId};
use crate::task::TaskStatus;

#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: String,
    pub name: Option<String>,
    pub capabilities: Vec<String>,
    pub joined_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub left_at: Option<Timestamp>,
    pub active_claims: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: i64,
    pub task: Option<TaskName>,
    pub from: String,
    pub to: Option<String>,
    pub text: String,
    pub sent_at: Timestamp,
    pub acknowledged_at: Option<Timestamp>,
    pub acknowledged_by: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct MessageFilter {
    pub task: Option<TaskId>,
    pub to: Option<String>,
    pub include_acknowledged: bool,
    pub limit: u64,
}

#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events with a greater number.
    pub since: i64,
    /// Only events at or after this time.
    pub not_before: Option<Timestamp>,
    pub task: Option<TaskId>,
    /// Only events of these kinds; of all kinds if it is empty.
    pub kinds: Vec<EventKind>,
    /// Only events that this holder has caused.
    pub actor: Option<String>,
    /// Select the last `limit` events instead of the first.
    pub last: bool,
    /// An event that is committed later than one with a greater number may be missing. A reader that continues after the last
    /// number would never see it; one that reads the same events again does not need to wait for it.
    pub may_lack_events: bool,
    pub limit: u64,
}

pub trait ReadFeed {
    fn agent(&self, id: &str) -> Result<Option<Agent>>;
    fn agents(&self) -> Result<Vec<Agent>>;
    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)>;
    /// What earlier holders left on a task for the holder `reader`.
    fn task_notes(&self, task: &TaskId, reader: &str) -> Result<TaskNotes>;
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>>;
    /// The last event of each of these tasks.
    fn last_events(&self, tasks: &[TaskId]) -> Result<Vec<Event>>;

    /// The number of matching events, regardless of `limit`.
    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        let all = self.events(&EventFilter { limit: u64::MAX, ..filter.clone() })?;
        Ok(u64::try_from(all.len()).unwrap_or(u64::MAX))
    }
}

pub trait WriteFeed {
    fn save_agent(&mut self, agent: &Agent) -> Result<()>;
    /// Records that the agent was seen now. False if no agent has this id. A store may skip the write if the last one
    /// is less than a second old.
    fn see_agent(&mut self, id: &str) -> Result<bool>;
    fn insert_message(
        &mut self,
        task: Option<&TaskId>,
        from: &str,
        to: Option<&str>,
        text: &str,
    ) -> Result<i64>;
    /// False if there is no such message or it was acknowledged before.
    fn acknowledge(&mut self, message: i64, by: &str) -> Result<bool>;
    fn append(&mut self, event: NewEvent<'_>) -> Result<()>;
}

/// Reads the columns of the table. The store adds the number of the agent's claims.
impl Record for Agent {
    const TABLE: &'static Table = &agents::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            id: row.string(agents::id)?,
            name: row.optional_string(agents::name)?,
            capabilities: row.json(agents::capabilities)?,
            joined_at: row.time(agents::joined_at)?,
            last_seen_at: row.time(agents::last_seen_at)?,
            left_at: row.optional_time(agents::left_at)?,
            active_claims: 0,
        })
    }
}

impl Agent {
    /// The columns that are not overwritten when a known agent is saved again.
    pub const LASTING: [Column; 1] = [agents::joined_at];

    pub fn values(&self) -> Result<Values<'_>> {
        Ok(vec![
            (agents::id, (&self.id).into()),
            (agents::name, self.name.as_ref().into()),
            (agents::capabilities, json(&self.capabilities)?.into()),
            (agents::joined_at, self.joined_at.into()),
            (agents::last_seen_at, self.last_seen_at.into()),
            (agents::left_at, self.left_at.into()),
        ])
    }

    /// Reads the agent's columns, and the number of its claims from the column after them.
    pub fn read_counted(row: &dyn Row) -> Result<Self> {
        let active_claims = row.count(agents::TABLE.columns.len())?;
        Ok(Self { active_claims, ..Self::load(row, 0)? })
    }
}

impl Message {
    /// Reads the message's columns, and the name of its task, if it has one, from the columns after them.
    pub fn read_named(row: &dyn Row) -> Result<Self> {
        let task = Reader::new(row, messages::TABLE.columns.len());
        let row = Reader::new(row, 0);
        Ok(Self {
            id: row.int(messages::id)?,
            task: task.optional_text(tasks::id)?.map(|_| read_name(task)).transpose()?,
            from: row.string(messages::sender)?,
            to: row.optional_string(messages::recipient)?,
            text: row.string(messages::text)?,
            sent_at: row.time(messages::sent_at)?,
            acknowledged_at: row.optional_time(messages::acknowledged_at)?,
            acknowledged_by: row.optional_string(messages::acknowledged_by)?,
        })
    }
}

impl Record for Event {
    const TABLE: &'static Table = &events::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            seq: row.int(events::seq)?,
            at: row.time(events::at)?,
            kind: row.parsed(events::kind, EventKind::parse)?,
            actor: row.string(events::actor)?,
            task: row.optional_text(events::task_id)?.map(TaskId::new),
            from: row.optional_parsed(events::from_status, TaskStatus::parse)?,
            to: row.optional_parsed(events::to_status, TaskStatus::parse)?,
            fence: row.optional_int(events::fence)?.map(Fence::new),
            detail: row.optional_json(events::detail)?.unwrap_or_default(),
        })
    }
}

impl NewEvent<'_> {
    /// All columns but the number, which the store draws.
    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        Ok(vec![
            (events::at, now.into()),
            (events::kind, self.kind.as_str().into()),
            (events::actor, self.actor.into()),
            (events::task_id, self.task.map(TaskId::as_str).into()),
            (events::from_status, self.from.map(TaskStatus::as_str).into()),
            (events::to_status, self.to.map(TaskStatus::as_str).into()),
            (events::fence, self.fence.map(Fence::number).into()),
            (events::detail, if self.detail.is_null() { None } else { Some(json(&self.detail)?) }.into()),
        ])
    }
}
