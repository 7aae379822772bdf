//! Rows of agents, messages and events.

use crate::clock::Timestamp;
use crate::error::{Result, TaskName};
use crate::event::{Event, NewEvent};
use crate::id::TaskId;

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
    pub task: Option<TaskId>,
    /// The last so many instead of the first so many.
    pub last: bool,
    pub limit: u64,
}

pub trait ReadFeed {
    fn agent(&self, id: &str) -> Result<Option<Agent>>;
    fn agents(&self) -> Result<Vec<Agent>>;
    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)>;
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>>;

    /// How many there are, whatever the limit.
    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        let all = self.events(&EventFilter { limit: u64::MAX, ..filter.clone() })?;
        Ok(u64::try_from(all.len()).unwrap_or(u64::MAX))
    }
}

pub trait WriteFeed {
    fn save_agent(&mut self, agent: &Agent) -> Result<()>;
    /// Records that the agent was seen now. False if there is none of that id. A store may skip this less than a second after
    /// the last time.
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
