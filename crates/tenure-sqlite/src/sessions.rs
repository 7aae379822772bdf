//! Sessions and what they are through with.

use rusqlite::{OptionalExtension, Row, ToSql, params};
use tenure_core::Result;
use tenure_core::id::{AttemptId, Fence, TaskId};
use tenure_core::session::{Current, DoneTask, Session, SessionState};
use tenure_core::store::{ReadSessions, WriteSessions};

use crate::connection::Transaction;
use crate::error::sql_error;
use crate::rows::{Sql, count, json, parsed, status, time, to_json};

const COLUMNS: &str = "id, state, runner_id, options, current_task_id, current_key, current_fence, current_attempt, \
     current_agent_session, fence, error, started_at, updated_at";

fn read_session(row: &Row<'_>) -> Sql<Session> {
    let current = match row.get::<_, Option<String>>(4)? {
        Some(task) => Some(Current {
            task: TaskId::new(task),
            key: row.get(5)?,
            fence: Fence::new(row.get(6)?),
            attempt: row.get::<_, Option<String>>(7)?.map(AttemptId::new),
            agent_session: row.get(8)?,
        }),
        None => None,
    };
    Ok(Session {
        id: row.get(0)?,
        state: parsed(1, &row.get::<_, String>(1)?, SessionState::parse)?,
        runner: row.get(2)?,
        options: json(3, &row.get::<_, String>(3)?)?,
        current,
        fence: Fence::new(row.get(9)?),
        error: row.get(10)?,
        started_at: time(row, 11)?,
        updated_at: time(row, 12)?,
    })
}

impl Transaction<'_> {
    fn sessions_where(&self, rest: &str, values: &[&dyn ToSql]) -> Result<Vec<Session>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions {rest}"))?
                .query_map(values, read_session)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

impl ReadSessions for Transaction<'_> {
    fn session(&self, id: &str) -> Result<Option<Session>> {
        self.conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))
            .and_then(|mut s| s.query_row([id], read_session).optional())
            .map_err(|e| sql_error(&e))
    }

    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>> {
        // `~` is greater than everything in an id.
        self.sessions_where(
            &format!("WHERE id >= ?1 AND id < ?2 ORDER BY started_at DESC, id LIMIT {limit}"),
            &[&prefix, &format!("{prefix}~")],
        )
    }

    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.sessions_where("ORDER BY started_at DESC, id LIMIT ?1", &[&limit])?;
        let total = self
            .conn
            .prepare_cached("SELECT count(*) FROM sessions")
            .and_then(|mut s| s.query_row([], |row| count(row, 0)))
            .map_err(|e| sql_error(&e))?;
        Ok((found, total))
    }

    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>> {
        let read = || -> Sql<Vec<_>> {
            self.conn
                .prepare_cached(
                    "SELECT task_id, key, status, fence, at FROM session_tasks WHERE session_id = ?1 ORDER BY number",
                )?
                .query_map([session], |row| {
                    Ok(DoneTask {
                        task: TaskId::new(row.get::<_, String>(0)?),
                        key: row.get(1)?,
                        status: status(row, 2)?,
                        fence: Fence::new(row.get(3)?),
                        at: time(row, 4)?,
                    })
                })?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

impl WriteSessions for Transaction<'_> {
    fn save_session(&mut self, session: &Session) -> Result<()> {
        let current = session.current.as_ref();
        let save = || -> Sql<usize> {
            self.conn
                .prepare_cached(&format!(
                    "INSERT INTO sessions ({COLUMNS})
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                     ON CONFLICT (id) DO UPDATE SET state = ?2, runner_id = ?3, options = ?4, current_task_id = ?5,
                       current_key = ?6, current_fence = ?7, current_attempt = ?8, current_agent_session = ?9,
                       fence = ?10, error = ?11, started_at = ?12, updated_at = ?13"
                ))?
                .execute(params![
                    session.id,
                    session.state.as_str(),
                    session.runner,
                    to_json(&session.options)?,
                    current.map(|c| c.task.as_str()),
                    current.map(|c| &c.key),
                    current.map(|c| c.fence.number()),
                    current.and_then(|c| c.attempt.as_ref()).map(AttemptId::as_str),
                    current.and_then(|c| c.agent_session.as_ref()),
                    session.fence.number(),
                    session.error,
                    session.started_at.as_millis(),
                    session.updated_at.as_millis(),
                ])
        };
        save().map(drop).map_err(|e| sql_error(&e))
    }

    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT INTO session_tasks (session_id, task_id, key, status, fence, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut s| {
                s.execute(params![
                    session,
                    done.task.as_str(),
                    done.key,
                    done.status.as_str(),
                    done.fence.number(),
                    done.at.as_millis()
                ])
            })
            .map(drop)
            .map_err(|e| sql_error(&e))
    }
}
