//! Sessions in SQL.

use super::{SqlTx, after_prefix, columns};
use crate::error::Result;
use crate::session::{DoneTask, Session};
use crate::store::columns::{session_tasks, sessions};
use crate::store::sessions::{ReadSessions, WriteSessions};

impl<T: SqlTx> ReadSessions for T {
    fn session(&self, id: &str) -> Result<Option<Session>> {
        Ok(self.select("id = ?", &[id.into()])?.pop())
    }

    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.select(
            "id >= ? AND id < ? ORDER BY started_at DESC, id LIMIT ?",
            &[prefix.into(), after_prefix(prefix).into(), limit.into()],
        )
    }

    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)> {
        let found = self.select("true ORDER BY started_at DESC, id LIMIT ?", &[limit.into()])?;
        Ok((found, self.count(&sessions::TABLE, "true", &[])?))
    }

    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>> {
        self.select("session_id = ? ORDER BY number", &[session.into()])
    }
}

impl<T: SqlTx> WriteSessions for T {
    fn save_session(&mut self, session: &Session) -> Result<()> {
        self.upsert_own(&sessions::TABLE, &session.values()?)
    }

    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()> {
        let values = done.values(session);
        self.defer(
            &session_tasks::TABLE,
            &T::DIALECT.insert(&session_tasks::TABLE, columns(&values)),
            &values,
        )
    }
}
