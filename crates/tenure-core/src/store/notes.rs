//! What earlier holders left on a task for the next one.

use super::feed::Message;
use crate::clock::Timestamp;
use crate::task::TaskStatus;

/// How many messages are read for a holder. They are the oldest ones, so every message with a smaller number than the last
/// of them was shown too.
pub const MESSAGES_SHOWN: usize = 20;

/// How many of the last changes of a task's status are read.
pub const CHANGES_READ: usize = 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskNotes {
    /// Unacknowledged messages on the task to the reader or to any holder, in order; at most one more than
    /// [`MESSAGES_SHOWN`].
    pub messages: Vec<Message>,
    /// The last changes of the status, newest first; at most [`CHANGES_READ`].
    pub changes: Vec<StatusChange>,
}

/// A change of a task's status, as its event records it.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusChange {
    pub at: Timestamp,
    pub actor: String,
    pub from: Option<TaskStatus>,
    pub to: Option<TaskStatus>,
    pub detail: serde_json::Value,
}
