//! Agents, messages and the event feed.

use rusqlite::params;
use tenure_core::Result;
use tenure_core::event::{Event, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::store::columns::{agents, events, messages, names_of};
use tenure_core::store::{
    Agent, Cell, Column, Dialect, EventFilter, Message, MessageFilter, ReadFeed, SqlTx, WriteFeed,
    name_columns,
};

use crate::connection::Transaction;
use crate::error::sql_error;

pub(crate) const SEE_AGENT: &str = "UPDATE agents SET last_seen_at = ?2, left_at = NULL WHERE id = ?1";

fn agent_query(rest: &str) -> String {
    format!(
        "SELECT {}, (SELECT count(*) FROM leases l WHERE l.holder_id = a.id AND l.ended_at IS NULL
                    AND l.resource_kind = 'task' AND l.expires_at > ?)
         FROM agents a {rest}",
        agents::TABLE.of("a")
    )
}

/// Saves an agent. If it exists, its [`Agent::LASTING`] columns are kept.
pub(crate) fn save_agent_sql(values: &[(Column, Cell<'_>)]) -> String {
    Dialect::Sqlite.upsert(&agents::TABLE, values.iter().map(|(column, _)| column), &Agent::LASTING)
}

impl Transaction<'_> {
    fn some_messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        let mut terms = vec!["true"];
        let mut values: Vec<Cell<'_>> = Vec::new();
        if let Some(task) = &filter.task {
            terms.push("task_id = ?");
            values.push(task.as_str().into());
        }
        if let Some(to) = &filter.to {
            terms.push("recipient = ?");
            values.push(to.into());
        }
        if !filter.include_acknowledged {
            terms.push("acknowledged_at IS NULL");
        }
        let condition = terms.join(" AND ");
        let total = self.count(&messages::TABLE, &condition, &values)?;
        let sql = format!(
            "SELECT {}, {} FROM (SELECT * FROM messages WHERE {condition} ORDER BY id LIMIT ?) m
             LEFT JOIN tasks t ON t.id = m.task_id ORDER BY m.id",
            messages::TABLE.of("m"),
            names_of("t", name_columns()),
        );
        values.push(filter.limit.into());
        Ok((self.query(&sql, &values, Message::read_named)?, total))
    }
}

/// The condition of a filter, and its values.
fn events_where(filter: &EventFilter) -> (&'static str, Vec<Cell<'_>>) {
    match &filter.task {
        Some(task) => ("seq > ? AND task_id = ?", vec![filter.since.into(), task.as_str().into()]),
        None => ("seq > ?", vec![filter.since.into()]),
    }
}

impl ReadFeed for Transaction<'_> {
    fn agent(&self, id: &str) -> Result<Option<Agent>> {
        let values = [self.now.into(), id.into()];
        Ok(self.query(&agent_query("WHERE a.id = ?"), &values, Agent::read_counted)?.pop())
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        let sql = agent_query("ORDER BY a.joined_at, a.id");
        self.query(&sql, &[self.now.into()], Agent::read_counted)
    }

    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        self.some_messages(filter)
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        let order = if filter.last { "DESC" } else { "ASC" };
        let (condition, mut values) = events_where(filter);
        values.push(filter.limit.into());
        let mut events = self.select(&format!("{condition} ORDER BY seq {order} LIMIT ?"), &values)?;
        if filter.last {
            events.reverse();
        }
        Ok(events)
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        let (condition, values) = events_where(filter);
        self.count(&events::TABLE, condition, &values)
    }
}

impl WriteFeed for Transaction<'_> {
    fn save_agent(&mut self, agent: &Agent) -> Result<()> {
        let values = agent.values()?;
        self.execute(&agents::TABLE, &save_agent_sql(&values), &values).map(drop)
    }

    fn see_agent(&mut self, id: &str) -> Result<bool> {
        self.conn
            .prepare_cached(SEE_AGENT)
            .and_then(|mut s| s.execute(params![id, self.now.as_millis()]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn insert_message(
        &mut self,
        task: Option<&TaskId>,
        from: &str,
        to: Option<&str>,
        text: &str,
    ) -> Result<i64> {
        let values = [
            (messages::task_id, task.map(TaskId::as_str).into()),
            (messages::sender, from.into()),
            (messages::recipient, to.into()),
            (messages::text, text.into()),
            (messages::sent_at, self.now.into()),
        ];
        self.insert_numbered(&messages::TABLE, &values).map_err(|e| sql_error(&e))
    }

    fn acknowledge(&mut self, message: i64, by: &str) -> Result<bool> {
        self.conn
            .prepare_cached(
                "UPDATE messages SET acknowledged_at = ?2, acknowledged_by = ?3
                 WHERE id = ?1 AND acknowledged_at IS NULL",
            )
            .and_then(|mut s| s.execute(params![message, self.now.as_millis(), by]))
            .map(|changed| changed > 0)
            .map_err(|e| sql_error(&e))
    }

    fn append(&mut self, event: NewEvent<'_>) -> Result<()> {
        self.insert(&events::TABLE, &event.values(self.now)?)
    }
}
