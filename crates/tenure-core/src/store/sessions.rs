//! Rows of sessions and of what they are through with.

use crate::error::Result;
use crate::session::{DoneTask, Session};

pub trait ReadSessions {
    fn session(&self, id: &str) -> Result<Option<Session>>;
    /// Whose id begins so (hex digits and dashes, lower case), newest first.
    fn find_sessions(&self, prefix: &str, limit: usize) -> Result<Vec<Session>>;
    /// Newest first, and how many there are.
    fn sessions(&self, limit: u64) -> Result<(Vec<Session>, u64)>;
    /// In the order in which they were done.
    fn done_tasks(&self, session: &str) -> Result<Vec<DoneTask>>;
}

pub trait WriteSessions {
    /// Inserts it, or replaces what was there.
    fn save_session(&mut self, session: &Session) -> Result<()>;
    fn insert_done_task(&mut self, session: &str, done: &DoneTask) -> Result<()>;
}
