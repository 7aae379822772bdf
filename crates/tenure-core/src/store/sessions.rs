//! Rows of sessions and of the tasks that they have finished with.

use super::columns::{Table, session_tasks, sessions};
use super::rows::{Reader, Record, Values, json};
use crate::error::Result;
use crate::id::{AttemptId, Fence, TaskId};
use crate::session::{Current, DoneTask, Session, SessionState};
use crate::task::TaskStatus;

pub trait ReadSessions {
    fn session(&self, id: &str) -> Result<Option<Session>>;
    /// The sessions whose id begins with `prefix` (hex digits and dashes, lower case), newest first.
    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>>;
    /// The newest sessions, and the number of all.
    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)>;
    /// In the order in which they were finished.
    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>>;
}

pub trait WriteSessions {
    /// Inserts the session, or replaces the row with its id.
    fn save_session(&mut self, session: &Session) -> Result<()>;
    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()>;
}

impl Record for Session {
    const TABLE: &'static Table = &sessions::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        let current = match row.optional_text(sessions::current_task_id)? {
            Some(task) => Some(Current {
                task: TaskId::new(task),
                key: row.string(sessions::current_key)?,
                fence: Fence::new(row.int(sessions::current_fence)?),
                attempt: row.optional_text(sessions::current_attempt)?.map(AttemptId::new),
                agent_session: row.optional_string(sessions::current_agent_session)?,
            }),
            None => None,
        };
        Ok(Self {
            id: row.string(sessions::id)?,
            state: row.parsed(sessions::state, SessionState::parse)?,
            runner: row.string(sessions::runner_id)?,
            options: row.json(sessions::options)?,
            current,
            fence: Fence::new(row.int(sessions::fence)?),
            error: row.optional_string(sessions::error)?,
            started_at: row.time(sessions::started_at)?,
            updated_at: row.time(sessions::updated_at)?,
        })
    }
}

impl Session {
    pub fn values(&self) -> Result<Values<'_>> {
        let current = self.current.as_ref();
        let attempt = current.and_then(|current| current.attempt.as_ref());
        let agent_session = current.and_then(|current| current.agent_session.as_ref());
        Ok(vec![
            (sessions::id, (&self.id).into()),
            (sessions::state, self.state.as_str().into()),
            (sessions::runner_id, (&self.runner).into()),
            (sessions::options, json(&self.options)?.into()),
            (sessions::current_task_id, current.map(|current| current.task.as_str()).into()),
            (sessions::current_key, current.map(|current| &current.key).into()),
            (sessions::current_fence, current.map(|current| current.fence.number()).into()),
            (sessions::current_attempt, attempt.map(AttemptId::as_str).into()),
            (sessions::current_agent_session, agent_session.into()),
            (sessions::fence, self.fence.number().into()),
            (sessions::error, self.error.as_ref().into()),
            (sessions::started_at, self.started_at.into()),
            (sessions::updated_at, self.updated_at.into()),
        ])
    }
}

impl Record for DoneTask {
    const TABLE: &'static Table = &session_tasks::TABLE;

    fn read(row: Reader<'_>) -> Result<Self> {
        Ok(Self {
            task: TaskId::new(row.text(session_tasks::task_id)?),
            key: row.string(session_tasks::key)?,
            status: row.parsed(session_tasks::status, TaskStatus::parse)?,
            fence: Fence::new(row.int(session_tasks::fence)?),
            at: row.time(session_tasks::at)?,
        })
    }
}

impl DoneTask {
    pub fn values<'a>(&'a self, session: &'a str) -> Values<'a> {
        vec![
            (session_tasks::session_id, session.into()),
            (session_tasks::task_id, self.task.as_str().into()),
            (session_tasks::key, (&self.key).into()),
            (session_tasks::status, self.status.as_str().into()),
            (session_tasks::fence, self.fence.number().into()),
            (session_tasks::at, self.at.into()),
        ]
    }
}
