//! Adding a task.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::check_priority;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::kernel;
use crate::reference;
use crate::store::{NewTask, TaskLookup, Tx, Viewer};
use crate::task::{DEFAULT_PRIORITY, Task};
use crate::text;

/// A request to add a task. MCP clients send it as JSON; the comments are the descriptions in its published schema.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddTask {
    /// What is to be done, in a line of at most 500 characters.
    pub title: String,
    /// More about it, at most 256 KiB.
    #[serde(default)]
    pub description: String,
    /// The key to name it by (default: the next of T1, T2 …).
    pub key: Option<String>,
    /// The section it belongs to. It must exist.
    pub section: Option<String>,
    /// The specification: a file, and a heading in it (docs/SPEC.md#login).
    pub source_file: Option<String>,
    /// Lower comes first (default 100).
    pub priority: Option<i64>,
    /// Tasks that must be finished first.
    #[serde(default)]
    pub depends_on: Vec<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    /// Insert directly after this task, in the same section and with the same priority.
    pub after: Option<String>,
}

pub fn add_task(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, request: &AddTask) -> Result<Task> {
    text::check_title(&request.title)?;
    text::check_description(&request.description)?;
    for label in &request.labels {
        text::check_label(label)?;
    }
    if let Some(source) = &request.source_file {
        text::check_source_file(source)?;
    }
    request.priority.map_or(Ok(()), check_priority)?;
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let mut section = match &request.section {
        Some(name) => Some(reference::section(tx, name)?.id),
        None => None,
    };
    let mut priority = request.priority.unwrap_or(DEFAULT_PRIORITY);
    let position = match &request.after {
        Some(other) => {
            let before = named(tx, other, &viewer)?;
            let its = before.section.as_ref().map(|s| s.id.clone());
            if section.is_some() && section != its {
                return Err(Error::invalid(format!("{} is in another section", before.key)));
            }
            section = its;
            priority = request.priority.unwrap_or(before.priority);
            insert_position_after(tx, section.as_ref(), &before, &viewer)?
        }
        None => next_position(tx, section.as_ref())?,
    };
    let key = match &request.key {
        Some(key) => free_key(tx, key)?,
        None => next_key(tx)?,
    };
    let task = NewTask {
        description: request.description.clone(),
        section,
        source_file: request.source_file.clone(),
        priority,
        position,
        labels: unique(&request.labels),
        ..NewTask::new(ctx.ids.task(), key, &request.title)
    };
    insert(tx, &task, &caller.holder.id)?;
    for on in &request.depends_on {
        let on = TaskId::new(reference::task(tx, on)?.id);
        if on == task.id {
            return Err(Error::DependencyCycle { path: vec![task.key.clone(), task.key] });
        }
        tx.add_dependency(&task.id, &on)?;
    }
    kernel::work_appeared(tx, ctx)?;
    tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })
}

/// Inserts the row and its event.
pub(super) fn insert(tx: &mut dyn Tx, task: &NewTask, actor: &str) -> Result<()> {
    let mut event = NewEvent::new(EventKind::TaskCreated, actor)
        .task(&task.id)
        .detail(json!({"key": task.key, "title": task.title}));
    event.to = Some(task.status);
    tx.insert_task(task, event)
}

pub(super) fn free_key(tx: &mut dyn Tx, key: &str) -> Result<String> {
    text::check_task_key(key)?;
    match tx.find_tasks(TaskLookup::Key(key), 1)?.first() {
        None => Ok(key.to_owned()),
        Some(other) => Err(Error::Invalid {
            message: format!("the key {key} is already used by {:?}", other.title),
            hint: Some(Box::new(hints::show_task(key))),
        }),
    }
}

pub(super) fn next_key(tx: &mut dyn Tx) -> Result<String> {
    // Skips numbers that are already in use as explicit keys.
    for _ in 0..10_000 {
        let key = format!("T{}", tx.take_task_number()?);
        if tx.find_tasks(TaskLookup::Key(&key), 1)?.is_empty() {
            return Ok(key);
        }
    }
    Err(Error::store("no free task number found"))
}

/// The distance between new neighbours, so that a task can be inserted between them without moving others.
const GAP: i64 = 1 << 20;

pub(super) fn next_position(tx: &dyn Tx, section: Option<&SectionId>) -> Result<i64> {
    Ok(tx.last_position(section)?.unwrap_or(0).saturating_add(GAP))
}

pub(super) fn insert_position_after(
    tx: &mut dyn Tx,
    section: Option<&SectionId>,
    before: &Task,
    viewer: &Viewer,
) -> Result<i64> {
    if let Some(position) = between(tx, section, before.position)? {
        return Ok(position);
    }
    tx.spread_positions(section)?;
    let before =
        tx.task(&before.id, viewer)?.ok_or_else(|| Error::TaskNotFound { reference: before.key.clone() })?;
    between(tx, section, before.position)?.ok_or_else(|| Error::store("no position is free after that task"))
}

fn between(tx: &dyn Tx, section: Option<&SectionId>, before: i64) -> Result<Option<i64>> {
    Ok(match tx.position_after(section, before)? {
        None => before.checked_add(GAP),
        Some(next) if next - before >= 2 => Some(before + (next - before) / 2),
        Some(_) => None,
    })
}

pub(super) fn named(tx: &dyn Tx, reference: &str, viewer: &Viewer) -> Result<Task> {
    let name = reference::task(tx, reference)?;
    tx.task(&TaskId::new(&name.id), viewer)?.ok_or(Error::TaskNotFound { reference: name.key })
}

pub(super) fn unique(labels: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for label in labels {
        if !seen.contains(label) {
            seen.push(label.clone());
        }
    }
    seen
}
