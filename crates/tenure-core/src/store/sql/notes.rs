//! The notes on a task in SQL: as rows, or as two JSON columns of another query.

use serde::Deserialize;
use serde_json::Value;

use super::{SqlTx, Statement};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::TaskId;
use crate::store::feed::Message;
use crate::store::notes::{CHANGES_READ, MESSAGES_SHOWN, StatusChange, TaskNotes};
use crate::store::rows::{Row, unexpected};
use crate::task::TaskStatus;

/// Unacknowledged messages `m` on the task to the reader or to any holder.
fn messages_of(task: &str, reader: &str) -> String {
    format!(
        "FROM tenure.messages m WHERE m.project = $1 AND m.task_id = {task} AND m.acknowledged_at IS NULL
         AND (m.recipient IS NULL OR m.recipient = {reader}) ORDER BY m.id LIMIT {}",
        MESSAGES_SHOWN + 1
    )
}

/// The last changes `e` of the task's status.
fn changes_of(task: &str) -> String {
    format!(
        "FROM tenure.events e WHERE e.project = $1 AND e.task_id = {task} AND e.kind = 'task.status'
         ORDER BY e.seq DESC LIMIT {CHANGES_READ}"
    )
}

pub(super) static MESSAGES: Statement = Statement::new(|dialect| {
    dialect.statement(&format!(
        "SELECT m.id, m.sender, m.recipient, m.text, m.sent_at {}",
        messages_of("$2", "$3")
    ))
});

pub(super) static CHANGES: Statement = Statement::new(|dialect| {
    dialect.statement(&format!(
        "SELECT e.at, e.actor, e.from_status, e.to_status, e.detail {}",
        changes_of("$2")
    ))
});

/// Two columns for PostgreSQL from which [`notes_from_json`] reads the notes on the task with the id `task`.
pub fn notes_as_json(task: &str, reader: &str) -> String {
    format!(
        "array_to_json(ARRAY(SELECT json_build_array(m.id, m.sender, m.recipient, m.text, m.sent_at) {}))::text,
         array_to_json(ARRAY(SELECT json_build_array(e.at, e.actor, e.from_status, e.to_status, e.detail) {}))::text",
        messages_of(task, reader),
        changes_of(task)
    )
}

#[derive(Deserialize)]
struct MessageCells(i64, String, Option<String>, String, i64);

#[derive(Deserialize)]
struct ChangeCells(i64, String, Option<String>, Option<String>, Option<String>);

/// Reads the columns of [`notes_as_json`].
pub fn notes_from_json(messages: Option<&str>, changes: Option<&str>) -> Result<TaskNotes> {
    let damaged = |error: serde_json::Error| unexpected(format!("notes that are not JSON: {error}"));
    let messages: Vec<MessageCells> =
        messages.map(serde_json::from_str).transpose().map_err(damaged)?.unwrap_or_default();
    let changes: Vec<ChangeCells> =
        changes.map(serde_json::from_str).transpose().map_err(damaged)?.unwrap_or_default();
    Ok(TaskNotes {
        messages: messages.into_iter().map(message).collect(),
        changes: changes.into_iter().map(change).collect::<Result<_>>()?,
    })
}

/// The reader knows the task, so it is not repeated in each message.
fn message(MessageCells(id, from, to, text, sent_at): MessageCells) -> Message {
    Message {
        id,
        task: None,
        from,
        to,
        text,
        sent_at: Timestamp::from_millis(sent_at),
        acknowledged_at: None,
        acknowledged_by: None,
    }
}

fn change(ChangeCells(at, actor, from, to, detail): ChangeCells) -> Result<StatusChange> {
    let status = |text: Option<String>| text.as_deref().and_then(TaskStatus::parse);
    let detail = detail.map_or(Ok(Value::Null), |text| serde_json::from_str(&text));
    Ok(StatusChange {
        at: Timestamp::from_millis(at),
        actor,
        from: status(from),
        to: status(to),
        detail: detail.map_err(|_| unexpected("an event whose detail is not JSON"))?,
    })
}

pub(super) fn read_notes<T: SqlTx>(tx: &T, task: &TaskId, reader: &str) -> Result<TaskNotes> {
    if let Some(known) = tx.known_notes(task, reader)? {
        return Ok(known);
    }
    tx.flush_events();
    let string = |row: &dyn Row, at: usize| Ok::<_, Error>(row.text(at)?.map(str::to_owned));
    let number = |row: &dyn Row, at: usize| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    let messages = tx.query(MESSAGES.text(T::DIALECT), &[task.as_str().into(), reader.into()], |row| {
        Ok(message(MessageCells(
            number(row, 0)?,
            string(row, 1)?.unwrap_or_default(),
            string(row, 2)?,
            string(row, 3)?.unwrap_or_default(),
            number(row, 4)?,
        )))
    })?;
    let changes = tx.query(CHANGES.text(T::DIALECT), &[task.as_str().into()], |row| {
        let actor = string(row, 1)?.unwrap_or_default();
        change(ChangeCells(number(row, 0)?, actor, string(row, 2)?, string(row, 3)?, string(row, 4)?))
    })?;
    Ok(TaskNotes { messages, changes })
}
