//! Adding a task.

use serde_json::json;

use super::check_priority;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::kernel;
use crate::reference;
use crate::store::{NewTask, TaskLookup, Tx, Viewer};
use crate::task::{DEFAULT_PRIORITY, Task, TaskStatus};
use crate::text;

#[derive(Debug, Clone, Default)]
pub struct AddTask {
    pub title: String,
    pub key: Option<String>,
    pub description: String,
    pub section: Option<String>,
    pub source_file: Option<String>,
    pub priority: Option<i64>,
    pub depends_on: Vec<String>,
    pub labels: Vec<String>,
    /// Place it directly behind this one, in its section and with its priority.
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
            place_after(tx, section.as_ref(), &before, &viewer)?
        }
        None => last_place(tx, section.as_ref())?,
    };
    let key = match &request.key {
        Some(key) => free_key(tx, key)?,
        None => next_key(tx)?,
    };
    let task = NewTask {
        id: ctx.ids.task(),
        key,
        title: request.title.clone(),
        description: request.description.clone(),
        status: TaskStatus::Pending,
        section,
        source_file: request.source_file.clone(),
        priority,
        position,
        labels: unique(&request.labels),
    };
    insert(tx, &task, &caller.holder.id)?;
    for on in &request.depends_on {
        let on = TaskId::new(reference::task(tx, on)?.id);
        if on == task.id {
            return Err(Error::DependencyCycle { path: vec![task.key.clone(), task.key] });
        }
        tx.add_dependency(&task.id, &on)?;
    }
    kernel::work_appeared(tx, &viewer)?;
    tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })
}

/// The row and its event.
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
            message: format!("there is a task {key} already: {:?}", other.title),
            hint: Some(format!("tenure tasks show {key}")),
        }),
    }
}

pub(super) fn next_key(tx: &mut dyn Tx) -> Result<String> {
    // Somebody may have chosen a number for a name; the next one is free soon enough.
    for _ in 0..10_000 {
        let key = format!("T{}", tx.take_task_number()?);
        if tx.find_tasks(TaskLookup::Key(&key), 1)?.is_empty() {
            return Ok(key);
        }
    }
    Err(Error::store("no free task number was found"))
}

/// Room between two neighbours, so that a task can be put between them without moving others.
const GAP: i64 = 1 << 20;

pub(super) fn last_place(tx: &dyn Tx, section: Option<&SectionId>) -> Result<i64> {
    Ok(tx.last_position(section)?.unwrap_or(0).saturating_add(GAP))
}

pub(super) fn place_after(
    tx: &mut dyn Tx,
    section: Option<&SectionId>,
    before: &Task,
    viewer: &Viewer,
) -> Result<i64> {
    if let Some(place) = between(tx, section, before.position)? {
        return Ok(place);
    }
    tx.spread_positions(section)?;
    let before =
        tx.task(&before.id, viewer)?.ok_or_else(|| Error::TaskNotFound { reference: before.key.clone() })?;
    between(tx, section, before.position)?.ok_or_else(|| Error::store("no room was found behind that task"))
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
