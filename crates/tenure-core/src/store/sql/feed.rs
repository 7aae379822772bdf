//! Agents, messages and the event feed in SQL.

use super::known::KnownAgent;
use super::notes::read_notes;
use super::{SqlTx, Statement, columns};
use crate::error::Result;
use crate::event::{Event, NewEvent};
use crate::id::TaskId;
use crate::store::View;
use crate::store::columns::{Cell, agents, events, messages, names_of};
use crate::store::feed::{Agent, EventFilter, Message, MessageFilter, ReadFeed, WriteFeed};
use crate::store::notes::TaskNotes;
use crate::store::rows::json;
use crate::store::tasks::name_columns;

/// An agent of which the transaction knows that it was seen less than this long ago is not updated.
const SEEN_MS: i64 = 1000;

/// Selects agents `a` with the number of their claims. `$2` is the time.
fn agents_where(dialect: super::Dialect, rest: &str) -> String {
    dialect.statement(&format!(
        "SELECT {}, (SELECT count(*) FROM tenure.leases l WHERE l.project = $1 AND l.holder_id = a.id
                     AND l.ended_at IS NULL AND l.resource_kind = 'task' AND l.expires_at > $2)
         FROM tenure.agents a WHERE a.project = $1 AND {rest}",
        agents::TABLE.of("a")
    ))
}

pub(super) static SEE_AGENT: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.agents SET last_seen_at = $2, left_at = NULL WHERE project = $1 AND id = $3",
    )
});

static ACKNOWLEDGE: Statement = Statement::new(|dialect| {
    dialect.statement(
        "UPDATE tenure.messages SET acknowledged_at = $2, acknowledged_by = $3
         WHERE project = $1 AND id = $4 AND acknowledged_at IS NULL",
    )
});

/// The condition of a filter, and its values.
fn messages_where(filter: &MessageFilter) -> (String, Vec<Cell<'_>>) {
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
    (terms.join(" AND "), values)
}

/// The condition of a filter, and its values.
fn events_where(filter: &EventFilter) -> (String, Vec<Cell<'_>>) {
    let mut condition = "seq > ?".to_owned();
    let mut values: Vec<Cell<'_>> = vec![filter.since.into()];
    if let Some(task) = &filter.task {
        condition.push_str(" AND task_id = ?");
        values.push(task.as_str().into());
    }
    if let Some(at) = filter.not_before {
        condition.push_str(" AND at >= ?");
        values.push(at.into());
    }
    if let Some(actor) = &filter.actor {
        condition.push_str(" AND actor = ?");
        values.push(actor.into());
    }
    if !filter.kinds.is_empty() {
        condition.push_str(" AND kind IN (");
        condition.push_str(&vec!["?"; filter.kinds.len()].join(", "));
        condition.push(')');
        values.extend(filter.kinds.iter().map(|kind| Cell::from(kind.as_str())));
    }
    (condition, values)
}

impl<T: SqlTx> ReadFeed for T {
    fn agent(&self, id: &str) -> Result<Option<Agent>> {
        let sql = agents_where(T::DIALECT, "a.id = $3");
        Ok(self.query(&sql, &[self.on_store_clock(self.now()).into(), id.into()], Agent::read_counted)?.pop())
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        let sql = agents_where(T::DIALECT, "true ORDER BY a.joined_at, a.id");
        self.query(&sql, &[self.on_store_clock(self.now()).into()], Agent::read_counted)
    }

    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        let (condition, mut values) = messages_where(filter);
        let total = self.count(&messages::TABLE, &condition, &values)?;
        // The messages are limited before the join, so that only their tasks are read.
        let sql = T::DIALECT.statement(&format!(
            "SELECT {}, {}
             FROM (SELECT * FROM tenure.messages WHERE project = $1 AND {condition} ORDER BY id LIMIT ?) m
             LEFT JOIN tenure.tasks t ON t.project = $1 AND t.id = m.task_id ORDER BY m.id",
            messages::TABLE.of("m"),
            names_of("t", name_columns()),
        ));
        values.push(filter.limit.into());
        Ok((self.query(&sql, &values, Message::read_named)?, total))
    }

    fn task_notes(&self, task: &TaskId, reader: &str) -> Result<TaskNotes> {
        read_notes(self, task, reader)
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        self.require_exclusive_turn()?;
        self.flush_events();
        let order = if filter.last { "DESC" } else { "ASC" };
        let (condition, mut values) = events_where(filter);
        values.push(filter.limit.into());
        let mut found = self.select(&format!("{condition} ORDER BY seq {order} LIMIT ?"), &values)?;
        // The events of one task are always in order, because each of its changes waits for the one before.
        if filter.task.is_none() && !filter.may_lack_events && !found.is_empty() {
            self.require_whole_feed()?;
        }
        if filter.last {
            found.reverse();
        }
        Ok(found)
    }

    fn last_events(&self, tasks: &[TaskId]) -> Result<Vec<Event>> {
        self.require_exclusive_turn()?;
        self.flush_events();
        let last = format!(
            "SELECT (SELECT max(seq) FROM {} WHERE {}task_id = listed.value) FROM {}",
            T::DIALECT.name(&events::TABLE),
            T::DIALECT.scope(),
            T::DIALECT.list("?")
        );
        self.select(&T::DIALECT.one_of("seq", &last), &[json(&tasks)?.into()])
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        self.flush_events();
        let (condition, values) = events_where(filter);
        self.count(&events::TABLE, &condition, &values)
    }
}

impl<T: SqlTx> WriteFeed for T {
    fn save_agent(&mut self, agent: &Agent) -> Result<()> {
        let values = agent.values()?;
        let sql = T::DIALECT.upsert(&agents::TABLE, columns(&values), &Agent::LASTING);
        self.defer(&agents::TABLE, &sql, &values)
    }

    fn see_agent(&mut self, id: &str) -> Result<bool> {
        let sql = SEE_AGENT.text(T::DIALECT);
        let values = [(agents::last_seen_at, self.now().into()), (agents::id, id.into())];
        match self.known_agent(id) {
            KnownAgent::Unknown => Ok(self.execute(&agents::TABLE, sql, &values)? > 0),
            KnownAgent::Unregistered => Ok(false),
            KnownAgent::SeenAt(seen) => {
                if self.now().as_millis() - seen > SEEN_MS {
                    self.defer_shared(&agents::TABLE, sql, &values)?;
                }
                Ok(true)
            }
        }
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
            (messages::sent_at, self.now().into()),
        ];
        self.insert_numbered(&messages::TABLE, &values)
    }

    fn acknowledge(&mut self, message: i64, by: &str) -> Result<bool> {
        let values = [
            (messages::acknowledged_at, self.now().into()),
            (messages::acknowledged_by, by.into()),
            (messages::id, message.into()),
        ];
        Ok(self.execute(&messages::TABLE, ACKNOWLEDGE.text(T::DIALECT), &values)? > 0)
    }

    fn append(&mut self, event: NewEvent<'_>) -> Result<()> {
        self.insert_event(event)
    }
}
