//! Sessions and what they are through with.

use tenure_core::Result;
use tenure_core::id::{AttemptId, Fence, TaskId};
use tenure_core::session::{Current, DoneTask, Session, SessionState};
use tenure_core::store::{ReadSessions, WriteSessions};
use tokio_postgres::Row;

use crate::connection::Value;
use crate::rows::{all, count, get, json, limit_of, parsed, status, time, to_json};
use crate::transaction::Transaction;

const COLUMNS: &str = "id, state, runner_id, options, current_task_id, current_key, current_fence, current_attempt, \
     current_agent_session, fence, error, started_at, updated_at";

fn read_session(row: &Row) -> Result<Session> {
    let current = match get::<Option<String>>(row, 4)? {
        Some(task) => Some(Current {
            task: TaskId::new(task),
            key: get(row, 5)?,
            fence: Fence::new(get(row, 6)?),
            attempt: get::<Option<String>>(row, 7)?.map(AttemptId::new),
            agent_session: get(row, 8)?,
        }),
        None => None,
    };
    Ok(Session {
        id: get(row, 0)?,
        state: parsed(get(row, 1)?, SessionState::parse)?,
        runner: get(row, 2)?,
        options: json(get(row, 3)?)?,
        current,
        fence: Fence::new(get(row, 9)?),
        error: get(row, 10)?,
        started_at: time(row, 11)?,
        updated_at: time(row, 12)?,
    })
}

fn read_done(row: &Row) -> Result<DoneTask> {
    Ok(DoneTask {
        task: TaskId::new(get::<String>(row, 0)?),
        key: get(row, 1)?,
        status: status(row, 2)?,
        fence: Fence::new(get(row, 3)?),
        at: time(row, 4)?,
    })
}

impl Transaction<'_> {
    fn sessions_where(&self, rest: &str, values: &[&dyn Value]) -> Result<Vec<Session>> {
        let sql = format!("SELECT {COLUMNS} FROM tenure.sessions WHERE project = $1 {rest}");
        all(self.rows(&sql, values)?, read_session)
    }
}

impl ReadSessions for Transaction<'_> {
    fn session(&self, id: &str) -> Result<Option<Session>> {
        Ok(self.sessions_where("AND id = $2", &[&id])?.pop())
    }

    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>> {
        // `~` is greater than everything in an id.
        let rest = format!("AND id >= $2 AND id < $2 || '~' ORDER BY started_at DESC, id LIMIT {limit}");
        self.sessions_where(&rest, &[&prefix])
    }

    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)> {
        let found = self.sessions_where("ORDER BY started_at DESC, id LIMIT $2", &[&limit_of(limit)])?;
        let row = self.row("SELECT count(*) FROM tenure.sessions WHERE project = $1", &[])?;
        Ok((found, row.map_or(Ok(0), |row| count(&row, 0))?))
    }

    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>> {
        let rows = self.rows(
            "SELECT task_id, key, status, fence, at FROM tenure.session_tasks
             WHERE project = $1 AND session_id = $2 ORDER BY number",
            &[&session],
        )?;
        all(rows, read_done)
    }
}

impl WriteSessions for Transaction<'_> {
    fn save_session(&mut self, session: &Session) -> Result<()> {
        let current = session.current.as_ref();
        let sql = format!(
            "INSERT INTO tenure.sessions (project, {COLUMNS})
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             ON CONFLICT (project, id) DO UPDATE SET state = $3, runner_id = $4, options = $5, current_task_id = $6,
               current_key = $7, current_fence = $8, current_attempt = $9, current_agent_session = $10,
               fence = $11, error = $12, started_at = $13, updated_at = $14"
        );
        self.keep(
            "sessions",
            &sql,
            &[
                &session.id,
                &session.state.as_str(),
                &session.runner,
                &to_json(&session.options)?,
                &current.map(|c| c.task.as_str()),
                &current.map(|c| c.key.as_str()),
                &current.map(|c| c.fence.number()),
                &current.and_then(|c| c.attempt.as_ref()).map(AttemptId::as_str),
                &current.and_then(|c| c.agent_session.as_deref()),
                &session.fence.number(),
                &session.error,
                &session.started_at.as_millis(),
                &session.updated_at.as_millis(),
            ],
        )
    }

    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()> {
        self.keep(
            "session_tasks",
            "INSERT INTO tenure.session_tasks (project, session_id, task_id, key, status, fence, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &session,
                &done.task.as_str(),
                &done.key,
                &done.status.as_str(),
                &done.fence.number(),
                &done.at.as_millis(),
            ],
        )
    }
}
