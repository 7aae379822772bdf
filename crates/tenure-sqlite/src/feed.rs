//! Agents, messages and the event feed.

use rusqlite::{OptionalExtension, Row, ToSql, params};
use tenure_core::Result;
use tenure_core::event::{Event, EventKind, NewEvent};
use tenure_core::id::{Fence, TaskId};
use tenure_core::store::{Agent, EventFilter, Message, MessageFilter, ReadFeed, WriteFeed};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, count, json, optional_status, optional_time, parsed, time, to_json};
use crate::tasks::name_at;

pub(crate) const APPEND: &str =
    "INSERT INTO events (at, kind, actor, task_id, from_status, to_status, fence, detail)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(crate) const SAVE_AGENT: &str =
    "INSERT INTO agents (id, name, capabilities, joined_at, last_seen_at, left_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, capabilities = excluded.capabilities,
       last_seen_at = excluded.last_seen_at, left_at = excluded.left_at";

pub(crate) const SEE_AGENT: &str = "UPDATE agents SET last_seen_at = ?2, left_at = NULL WHERE id = ?1";

const AGENT_QUERY: &str = "SELECT a.id, a.name, a.capabilities, a.joined_at, a.last_seen_at, a.left_at,
            (SELECT count(*) FROM leases l WHERE l.holder_id = a.id AND l.ended_at IS NULL
             AND l.resource_kind = 'task' AND l.expires_at > ?1)
     FROM agents a";

fn read_agent(row: &Row<'_>) -> Sql<Agent> {
    Ok(Agent {
        id: row.get(0)?,
        name: row.get(1)?,
        capabilities: json(2, &row.get::<_, String>(2)?)?,
        joined_at: time(row, 3)?,
        last_seen_at: time(row, 4)?,
        left_at: optional_time(row, 5)?,
        active_claims: count(row, 6)?,
    })
}

fn read_message(row: &Row<'_>) -> Sql<Message> {
    let task = match row.get::<_, Option<String>>(7)? {
        Some(_) => Some(name_at(row, 7)?),
        None => None,
    };
    Ok(Message {
        id: row.get(0)?,
        from: row.get(1)?,
        to: row.get(2)?,
        text: row.get(3)?,
        sent_at: time(row, 4)?,
        acknowledged_at: optional_time(row, 5)?,
        acknowledged_by: row.get(6)?,
        task,
    })
}

fn read_event(row: &Row<'_>) -> Sql<Event> {
    let detail: Option<String> = row.get(8)?;
    Ok(Event {
        seq: row.get(0)?,
        at: time(row, 1)?,
        kind: parsed(2, &row.get::<_, String>(2)?, EventKind::parse)?,
        actor: row.get(3)?,
        task: row.get::<_, Option<String>>(4)?.map(TaskId::new),
        from: optional_status(row, 5)?,
        to: optional_status(row, 6)?,
        fence: row.get::<_, Option<i64>>(7)?.map(Fence::new),
        detail: detail.map_or(Ok(serde_json::Value::Null), |text| json(8, &text))?,
    })
}

impl Transaction<'_> {
    fn some_messages(&self, filter: &MessageFilter) -> Sql<(Vec<Message>, u64)> {
        let mut terms = vec!["1".to_owned()];
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        if let Some(task) = &filter.task {
            terms.push("m.task_id = ?".to_owned());
            values.push(Box::new(task.as_str().to_owned()));
        }
        if let Some(to) = &filter.to {
            terms.push("m.recipient = ?".to_owned());
            values.push(Box::new(to.clone()));
        }
        if !filter.include_acknowledged {
            terms.push("m.acknowledged_at IS NULL".to_owned());
        }
        let condition = terms.join(" AND ");
        let refs: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
        let total = self
            .conn
            .prepare_cached(&format!("SELECT count(*) FROM messages m WHERE {condition}"))?
            .query_row(refs.as_slice(), |row| count(row, 0))?;
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT m.id, m.sender, m.recipient, m.text, m.sent_at, m.acknowledged_at, m.acknowledged_by,
                    t.id, t.key, t.title, t.status
             FROM messages m LEFT JOIN tasks t ON t.id = m.task_id WHERE {condition} ORDER BY m.id LIMIT {}",
            filter.limit.min(i64::MAX.unsigned_abs())
        ))?;
        let messages = statement.query_map(refs.as_slice(), read_message)?.collect::<Sql<_>>()?;
        Ok((messages, total))
    }

    fn some_events(&self, filter: &EventFilter) -> Sql<Vec<Event>> {
        let order = if filter.last { "DESC" } else { "ASC" };
        let task = if filter.task.is_some() { "AND task_id = ?2" } else { "AND ?2 IS NULL" };
        let sql = format!(
            "SELECT seq, at, kind, actor, task_id, from_status, to_status, fence, detail FROM events
             WHERE seq > ?1 {task} ORDER BY seq {order} LIMIT ?3"
        );
        let mut events = self
            .conn
            .prepare_cached(&sql)?
            .query_map(
                params![
                    filter.since,
                    filter.task.as_ref().map(TaskId::as_str),
                    i64::try_from(filter.limit).unwrap_or(i64::MAX)
                ],
                read_event,
            )?
            .collect::<Sql<Vec<_>>>()?;
        if filter.last {
            events.reverse();
        }
        Ok(events)
    }
}

impl ReadFeed for Transaction<'_> {
    fn agent(&self, id: &str) -> Result<Option<Agent>> {
        self.conn
            .prepare_cached(&format!("{AGENT_QUERY} WHERE a.id = ?2"))
            .and_then(|mut s| s.query_row(params![self.now.as_millis(), id], read_agent).optional())
            .map_err(|e| sql_error(&e))
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!("{AGENT_QUERY} ORDER BY a.joined_at, a.id"))?
                .query_map([self.now.as_millis()], read_agent)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    fn messages(&self, filter: &MessageFilter) -> Result<(Vec<Message>, u64)> {
        self.some_messages(filter).map_err(|e| sql_error(&e))
    }

    fn events(&self, filter: &EventFilter) -> Result<Vec<Event>> {
        self.some_events(filter).map_err(|e| sql_error(&e))
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        let task = if filter.task.is_some() { "AND task_id = ?2" } else { "AND ?2 IS NULL" };
        let count: i64 = self
            .conn
            .prepare_cached(&format!("SELECT count(*) FROM events WHERE seq > ?1 {task}"))
            .and_then(|mut s| {
                s.query_row(params![filter.since, filter.task.as_ref().map(TaskId::as_str)], |row| row.get(0))
            })
            .map_err(|e| sql_error(&e))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

impl WriteFeed for Transaction<'_> {
    fn save_agent(&mut self, agent: &Agent) -> Result<()> {
        let save = || -> Sql<usize> {
            self.conn.prepare_cached(SAVE_AGENT)?.execute(params![
                agent.id,
                agent.name,
                to_json(&agent.capabilities)?,
                agent.joined_at.as_millis(),
                agent.last_seen_at.as_millis(),
                agent.left_at.map(tenure_core::Timestamp::as_millis),
            ])
        };
        save().map(drop).map_err(|e| sql_error(&e))
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
        self.conn
            .prepare_cached(
                "INSERT INTO messages (task_id, sender, recipient, text, sent_at) VALUES (?1, ?2, ?3, ?4, ?5)
                 RETURNING id",
            )
            .and_then(|mut s| {
                s.query_row(params![task.map(TaskId::as_str), from, to, text, self.now.as_millis()], |row| {
                    row.get(0)
                })
            })
            .map_err(|e| sql_error(&e))
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
        let insert = || -> Sql<usize> {
            let detail = if event.detail.is_null() { None } else { Some(to_json(&event.detail)?) };
            self.conn.prepare_cached(APPEND)?.execute(params![
                self.now.as_millis(),
                event.kind.as_str(),
                event.actor,
                event.task.map(TaskId::as_str),
                event.from.map(tenure_core::task::TaskStatus::as_str),
                event.to.map(tenure_core::task::TaskStatus::as_str),
                event.fence.map(Fence::number),
                detail
            ])
        };
        insert().map(drop).map_err(|e| sql_error(&e))
    }
}
