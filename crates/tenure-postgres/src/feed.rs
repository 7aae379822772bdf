//! Agents, messages and the event feed.

use tenure_core::event::{Event, NewEvent};
use tenure_core::id::{Fence, TaskId};
use tenure_core::store::columns::{agents, events, messages, names_of};
use tenure_core::store::{
    Agent, Dialect, EventFilter, Message, MessageFilter, ReadFeed, WriteFeed, name_columns,
};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};
use tokio_postgres::Row;

use crate::connection::Value;
use crate::error::Failure;
use crate::rows::{Parameters, PgRow, all, count, get, limit_of, record, to_json};
use crate::transaction::{PendingEvent, Transaction};

fn agent_query(rest: &str) -> String {
    format!(
        "SELECT {}, (SELECT count(*) FROM tenure.leases l WHERE l.project = $1 AND l.holder_id = a.id
                    AND l.ended_at IS NULL AND l.resource_kind = 'task' AND l.expires_at > $2)
         FROM tenure.agents a WHERE a.project = $1 {rest}",
        agents::TABLE.of("a")
    )
}

/// An agent that was seen less than this long ago is not updated.
const SEEN_MS: i64 = 1000;

fn read_agent(row: &Row) -> Result<Agent> {
    Agent::read_counted(&PgRow(row))
}

const EVENTS_WHERE: &str =
    "FROM tenure.events WHERE project = $1 AND seq > $2 AND ($3::text IS NULL OR task_id = $3)";
/// There is an index for the events of a task.
const TASK_EVENTS_WHERE: &str = "FROM tenure.events WHERE project = $1 AND seq > $2 AND task_id = $3";

fn events_where(filter: &EventFilter) -> &'static str {
    if filter.task.is_some() { TASK_EVENTS_WHERE } else { EVENTS_WHERE }
}

impl ReadFeed for Transaction<'_> {
    fn agent(&self, id: &str) -> Result<Option<Agent>> {
        let sql = agent_query("AND a.id = $3");
        self.row(&sql, &[&self.now.as_millis(), &id])?.map(|row| read_agent(&row)).transpose()
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        let sql = agent_query("ORDER BY a.joined_at, a.id");
        all(self.rows(&sql, &[&self.now.as_millis()])?, read_agent)
    }

    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        let mut terms = vec!["m.project = $1".to_owned()];
        let mut values: Vec<&dyn Value> = Vec::new();
        let task = filter.task.as_ref().map(TaskId::as_str);
        if task.is_some() {
            values.push(&task);
            terms.push(format!("m.task_id = ${}", values.len() + 1));
        }
        if filter.to.is_some() {
            values.push(&filter.to);
            terms.push(format!("m.recipient = ${}", values.len() + 1));
        }
        if !filter.include_acknowledged {
            terms.push("m.acknowledged_at IS NULL".to_owned());
        }
        let condition = terms.join(" AND ");
        let counting = format!("SELECT count(*) FROM tenure.messages m WHERE {condition}");
        let total = self.row(&counting, &values)?.map_or(Ok(0), |row| count(&row, 0))?;
        let listing = format!(
            "SELECT {}, {}
             FROM tenure.messages m LEFT JOIN tenure.tasks t ON t.project = $1 AND t.id = m.task_id
             WHERE {condition} ORDER BY m.id LIMIT {}",
            messages::TABLE.of("m"),
            names_of("t", name_columns()),
            limit_of(filter.limit)
        );
        let read = |row: &Row| Message::read_named(&PgRow(row));
        Ok((all(self.rows(&listing, &values)?, read)?, total))
    }

    /// A reader of the feed continues after the last number that it has seen, so no event with a lower number may be
    /// committed later. Of two claims that share a turn, one may draw its number first and commit last. So events of
    /// more than one task are returned only in an exclusive turn, during which no claim is in progress.
    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        self.require_exclusive_turn()?;
        self.flush_events();
        let order = if filter.last { "DESC" } else { "ASC" };
        let sql =
            format!("SELECT {} {} ORDER BY seq {order} LIMIT $4", events::TABLE.list, events_where(filter));
        let values: [&dyn Value; 3] =
            [&filter.since, &filter.task.as_ref().map(TaskId::as_str), &limit_of(filter.limit)];
        let mut events = all(self.rows(&sql, &values)?, record::<Event>)?;
        // The events of one task are always in order, because each of its changes waits for the one before.
        if self.writer.is_none() && filter.task.is_none() && !events.is_empty() {
            return Err(self.fail(Failure::NeedsExclusiveTurn));
        }
        if filter.last {
            events.reverse();
        }
        Ok(events)
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        self.flush_events();
        let sql = format!("SELECT count(*) {}", events_where(filter));
        let row = self.row(&sql, &[&filter.since, &filter.task.as_ref().map(TaskId::as_str)])?;
        row.map_or(Ok(0), |row| count(&row, 0))
    }
}

impl WriteFeed for Transaction<'_> {
    fn save_agent(&mut self, agent: &Agent) -> Result<()> {
        let values = agent.values()?;
        let columns = values.iter().map(|(column, _)| column);
        let sql = Dialect::Postgres.upsert(&agents::TABLE, columns, &Agent::LASTING);
        self.keep("agents", &sql, &Parameters::of(&values).values())
    }

    fn see_agent(&mut self, id: &str) -> Result<bool> {
        let sql = "UPDATE tenure.agents SET last_seen_at = $3, left_at = NULL WHERE project = $1 AND id = $2";
        let values: [&dyn Value; 2] = [&id, &self.now.as_millis()];
        let known = self.prefetched.borrow_mut().agent.take();
        let seen = known.filter(|(name, _)| name == id).and_then(|(_, seen)| seen);
        let Some(seen) = seen else {
            return Ok(!self.change(&format!("{sql} RETURNING 1"), &values)?.is_empty());
        };
        if self.now.as_millis() - seen > SEEN_MS {
            self.keep_shared("agents", sql, &values);
        }
        Ok(true)
    }

    fn insert_message(
        &mut self,
        task: Option<&TaskId>,
        from: &str,
        to: Option<&str>,
        text: &str,
    ) -> Result<i64> {
        let rows = self.change(
            "INSERT INTO tenure.messages (project, task_id, sender, recipient, text, sent_at)
             VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            &[&task.map(TaskId::as_str), &from, &to, &text, &self.now.as_millis()],
        )?;
        rows.first().map_or_else(|| Err(Error::store("the message was not written")), |row| get(row, 0))
    }

    fn acknowledge(&mut self, message: i64, by: &str) -> Result<bool> {
        let changed = self.change(
            "UPDATE tenure.messages SET acknowledged_at = $3, acknowledged_by = $4
             WHERE project = $1 AND id = $2 AND acknowledged_at IS NULL RETURNING 1",
            &[&message, &self.now.as_millis(), &by],
        )?;
        Ok(!changed.is_empty())
    }

    /// Buffered until the commit.
    fn append(&mut self, event: NewEvent<'_>) -> Result<()> {
        self.changed.set(true);
        let detail = if event.detail.is_null() { None } else { Some(to_json(&event.detail)?) };
        self.events.get_mut().push(PendingEvent {
            kind: event.kind.as_str(),
            actor: event.actor.to_owned(),
            task: event.task.map(|task| task.as_str().to_owned()),
            from: event.from.map(TaskStatus::as_str),
            to: event.to.map(TaskStatus::as_str),
            fence: event.fence.map(Fence::number),
            detail,
        });
        Ok(())
    }
}
