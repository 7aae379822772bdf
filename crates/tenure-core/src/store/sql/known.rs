//! What a transaction knows before it asks the database.

use crate::error::{Result, TaskName};
use crate::id::TaskId;
use crate::lease::{Lease, Resource, Ticket};
use crate::store::notes::TaskNotes;
use crate::store::tasks::TaskLookup;

/// What a transaction knows about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownAgent {
    /// It has to be queried.
    Unknown,
    Unregistered,
    /// When it was last seen, in milliseconds; 0 if it has left.
    SeenAt(i64),
}

/// What a transaction has read before it is needed. A store that does not prefetch knows nothing.
pub trait Known {
    /// The processes recorded in open leases and in tickets, as JSON.
    fn known_processes(&self) -> Option<Vec<String>> {
        None
    }

    fn known_open_lease(&self, _resource: &Resource) -> Option<Lease> {
        None
    }

    /// All tickets for tasks.
    fn known_work_tickets(&self) -> Option<Vec<Ticket>> {
        None
    }

    /// Called with all tickets for tasks when they were read.
    fn note_work_tickets(&self, _tickets: &[Ticket]) {}

    /// Whether there are certainly no tickets at all.
    fn is_without_tickets(&self) -> bool {
        false
    }

    /// Whether certainly no lease of a section is open.
    fn is_without_section_leases(&self) -> bool {
        false
    }

    /// Whether the resource certainly has no attempt in state `ending`.
    fn is_without_ending_attempts(&self, _resource: &Resource) -> bool {
        false
    }

    fn known_agent(&mut self, _id: &str) -> KnownAgent {
        KnownAgent::Unknown
    }

    /// The notes on a task for this reader.
    fn known_notes(&self, _task: &TaskId, _reader: &str) -> Result<Option<TaskNotes>> {
        Ok(None)
    }

    fn known_names(&self, _lookup: TaskLookup<'_>) -> Result<Option<Vec<TaskName>>> {
        Ok(None)
    }
}
