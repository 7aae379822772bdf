//! What a claim shows of the notes on its task: messages for the next holder, and the last remark.

use super::acquire::name_of;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::holder::Holder;
use crate::lease::EndReason;
use crate::store::{MESSAGES_SHOWN, Message, StatusChange, View};
use crate::task::{Task, TaskStatus};

/// The notes on a task that its new holder is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Unacknowledged messages to the holder or to any holder, oldest first. Finishing the task acknowledges them.
    pub messages: Vec<Message>,
    /// There are more messages than are shown.
    pub more_messages: bool,
    /// The last remark with which the task was released, rejected, failed or otherwise moved.
    pub last_remark: Option<Remark>,
}

impl Notes {
    /// The number of the last message that is shown. All messages for the holder with a smaller number are shown too.
    pub(super) fn messages_through(&self) -> i64 {
        self.messages.last().map_or(0, |message| message.id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub kind: RemarkKind,
    pub by: String,
    pub at: Timestamp,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkKind {
    Rejected,
    Failed,
    Released,
    Finished,
    /// The status was set without a lease, for example by `retry`.
    Changed,
}

impl RemarkKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Finished => "finished",
            Self::Changed => "changed",
        }
    }

    fn of(change: &StatusChange) -> Self {
        match (change.from, change.to) {
            (from, to) if is_rejection(from, to, &change.detail) => Self::Rejected,
            (_, Some(TaskStatus::Failed)) => Self::Failed,
            (_, Some(TaskStatus::Review | TaskStatus::Completed)) => Self::Finished,
            (Some(TaskStatus::InProgress), _) => Self::Released,
            _ => Self::Changed,
        }
    }
}

/// Whether a change of a status rejects finished work. A task under review is in progress, so its rejection is marked in
/// the event's detail.
pub fn is_rejection(from: Option<TaskStatus>, to: Option<TaskStatus>, detail: &serde_json::Value) -> bool {
    detail["rejected"] == true
        || (matches!(from, Some(TaskStatus::Review | TaskStatus::Completed))
            && to == Some(TaskStatus::Pending))
}

/// The notes on the task for `reader`.
pub fn notes(view: &dyn View, task: &Task, reader: &Holder) -> Result<Notes> {
    let found = view.task_notes(&task.id, &reader.id)?;
    let mut messages = found.messages;
    let more_messages = messages.len() > MESSAGES_SHOWN;
    messages.truncate(MESSAGES_SHOWN);
    for message in &mut messages {
        message.task = Some(name_of(task));
    }
    Ok(Notes { messages, more_messages, last_remark: found.changes.iter().find_map(remark) })
}

/// The remark of a change. What the kernel records about a lapsed or evicted lease is not one.
fn remark(change: &StatusChange) -> Option<Remark> {
    let text = change.detail["message"].as_str().filter(|text| !text.trim().is_empty())?;
    if EndReason::parse(text).is_some() {
        return None;
    }
    Some(Remark {
        kind: RemarkKind::of(change),
        by: change.actor.clone(),
        at: change.at,
        text: text.to_owned(),
    })
}
