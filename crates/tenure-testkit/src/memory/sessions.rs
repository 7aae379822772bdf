//! Sessions and the tasks that they have finished.

use tenure_core::Result;
use tenure_core::session::{DoneTask, Session};
use tenure_core::store::{ReadSessions, WriteSessions};

use super::MemoryTx;

impl MemoryTx {
    fn newest_sessions(&self, wanted: impl Fn(&Session) -> bool) -> Vec<Session> {
        let mut found: Vec<_> = self.state.sessions.values().filter(|s| wanted(s)).cloned().collect();
        found.sort_by(|a, b| b.started_at.cmp(&a.started_at).then_with(|| a.id.cmp(&b.id)));
        found
    }
}

impl ReadSessions for MemoryTx {
    fn session(&self, id: &str) -> Result<Option<Session>> {
        Ok(self.state.sessions.get(id).cloned())
    }

    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>> {
        let mut found = self.newest_sessions(|session| session.id.starts_with(prefix));
        found.truncate(limit);
        Ok(found)
    }

    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)> {
        let mut found = self.newest_sessions(|_| true);
        let total = found.len() as u64;
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok((found, total))
    }

    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>> {
        let of = |(id, _): &&(String, DoneTask)| id == session;
        Ok(self.state.done_tasks.iter().filter(of).map(|(_, done)| done.clone()).collect())
    }
}

impl WriteSessions for MemoryTx {
    fn save_session(&mut self, session: &Session) -> Result<()> {
        self.state.sessions.insert(session.id.clone(), session.clone());
        Ok(())
    }

    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()> {
        self.state.done_tasks.push((session.to_owned(), done.clone()));
        Ok(())
    }
}
