//! Editing and deleting a task.

use serde_json::{Map, Value, json};

use super::add::{insert_position_after, named, next_position, unique};
use super::check_priority;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::holder::Caller;
use crate::kernel;
use crate::lease::{LeaseState, Resource};
use crate::reference;
use crate::store::{TaskEdit, Tx};
use crate::task::Task;
use crate::text;

/// The requested changes; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct EditTask {
    pub title: Option<String>,
    pub description: Option<String>,
    /// `Some(None)` removes it from its section.
    pub section: Option<Option<String>>,
    pub source_file: Option<Option<String>>,
    pub priority: Option<i64>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
    pub after: Option<String>,
}

impl EditTask {
    pub fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.description.is_none()
            && self.section.is_none()
            && self.source_file.is_none()
            && self.priority.is_none()
            && self.add_labels.is_empty()
            && self.remove_labels.is_empty()
            && self.after.is_none()
    }
}

pub fn edit_task(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
    request: &EditTask,
) -> Result<Task> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = named(tx, reference, &viewer)?;
    let mut edit = TaskEdit::default();
    let mut changes = Map::new();
    if let Some(title) = &request.title {
        text::check_title(title)?;
        changes.insert("title".into(), json!({"from": task.title, "to": title}));
        edit.title = Some(title.clone());
    }
    if let Some(description) = &request.description {
        text::check_description(description)?;
        changes.insert("description".into(), Value::Bool(true));
        edit.description = Some(description.clone());
    }
    if let Some(source) = &request.source_file {
        source.as_deref().map_or(Ok(()), text::check_source_file)?;
        changes.insert("sourceFile".into(), json!({"from": task.source_file, "to": source}));
        edit.source_file = Some(source.clone());
    }
    if let Some(priority) = request.priority {
        check_priority(priority)?;
        changes.insert("priority".into(), json!({"from": task.priority, "to": priority}));
        edit.priority = Some(priority);
    }
    if !request.add_labels.is_empty() || !request.remove_labels.is_empty() {
        let mut labels = task.labels.clone();
        for label in &request.add_labels {
            text::check_label(label)?;
            labels.push(label.clone());
        }
        labels.retain(|label| !request.remove_labels.contains(label));
        let labels = unique(&labels);
        changes.insert("labels".into(), json!({"from": task.labels, "to": labels}));
        edit.labels = Some(labels);
    }
    let home = task.section.as_ref().map(|s| s.id.clone());
    let mut target = home.clone();
    if let Some(section) = &request.section {
        target = match section {
            Some(name) => Some(reference::section(tx, name)?.id),
            None => None,
        };
        if target != home {
            free_to_move(tx, ctx, caller, &task)?;
            changes.insert(
                "section".into(),
                json!({"from": task.section.as_ref().map(|s| &s.name), "to": section}),
            );
            edit.position = Some(next_position(tx, target.as_ref())?);
            edit.section = Some(target.clone());
        }
    }
    if let Some(other) = &request.after {
        let before = named(tx, other, &viewer)?;
        if before.id == task.id {
            return Err(Error::invalid("a task cannot come after itself"));
        }
        if before.section.as_ref().map(|s| s.id.clone()) != target {
            return Err(Error::invalid(format!("{} is in another section", before.key)));
        }
        edit.position = Some(insert_position_after(tx, target.as_ref(), &before, &viewer)?);
        if request.priority.is_none() {
            edit.priority = Some(before.priority);
        }
        changes.insert("after".into(), json!(before.key));
    }
    if !changes.is_empty() {
        let event = NewEvent::new(EventKind::TaskUpdated, &caller.holder.id)
            .task(&task.id)
            .detail(Value::Object(changes));
        tx.edit_task(&task.id, &edit, Some(event))?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })
}

/// Refuses to move a held task, because its holder works under the section's lease. Closes a lapsed lease first: it
/// was granted under the old section and must not be revived in the new one.
fn free_to_move(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, task: &Task) -> Result<()> {
    let Some(lease) = tx.open_lease(&Resource::task(&task.id))? else { return Ok(()) };
    match lease.state(tx.now(), ctx.judge) {
        LeaseState::Live => Err(kernel::held_error(tx, ctx, task, &lease)?),
        state => kernel::close_lapsed(tx, ctx, &lease, state, &caller.holder.id),
    }
}

/// Deletes a task that no other holder has and no task depends on.
pub fn delete_task(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
    force: bool,
) -> Result<Task> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = named(tx, reference, &viewer)?;
    if let Some(lease) = task.lease.clone() {
        let live = lease.state(tx.now(), ctx.judge) == LeaseState::Live;
        if live && !force && !kernel::acts_under(&lease, caller) {
            return Err(kernel::held_error(tx, ctx, &task, &lease)?);
        }
        kernel::evict(tx, ctx, &caller.holder.id, &lease)?;
    }
    let dependents = tx.dependents(&task.id)?;
    if !dependents.is_empty() {
        let keys: Vec<_> = dependents.iter().map(|d| d.key.as_str()).collect();
        let depend = if keys.len() == 1 { "depends" } else { "depend" };
        return Err(Error::Invalid {
            message: format!("{} cannot be deleted: {} {depend} on it", task.key, keys.join(", ")),
            hint: Some(Box::new(hints::remove_dependency(keys[0], &task.key))),
        });
    }
    let mut event = NewEvent::new(EventKind::TaskDeleted, &caller.holder.id)
        .task(&task.id)
        .detail(json!({"key": task.key, "title": task.title}));
    event.from = Some(task.status);
    tx.delete_task(&task.id, event)?;
    kernel::work_appeared(tx, ctx)?;
    Ok(task)
}
