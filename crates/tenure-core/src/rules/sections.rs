//! Sections: adding, editing, ordering, deleting. A section in which anything is held can be neither deleted nor made serial.

use serde_json::{Map, Value, json};

use super::check_priority;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{EventKind, NewEvent};
use crate::hints;
use crate::holder::Caller;
use crate::kernel;
use crate::lease::{LeaseState, Resource};
use crate::reference;
use crate::section::{Section, SectionMode};
use crate::shell_quote::quote;
use crate::store::{NewSection, SectionEdit, TaskFilter, Tx, View};
use crate::task::DEFAULT_PRIORITY;
use crate::text;

#[derive(Debug, Clone)]
pub struct AddSection {
    pub name: String,
    pub mode: SectionMode,
    pub priority: Option<i64>,
}

pub fn add_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    request: &AddSection,
) -> Result<Section> {
    check_free_name(tx, &request.name)?;
    request.priority.map_or(Ok(()), check_priority)?;
    let last = tx.sections()?.iter().map(|s| s.position).max().unwrap_or(0);
    let section = NewSection {
        id: ctx.ids.section(),
        name: request.name.clone(),
        mode: request.mode,
        priority: request.priority.unwrap_or(DEFAULT_PRIORITY),
        position: last + 1,
    };
    let event = NewEvent::new(EventKind::SectionCreated, &caller.holder.id)
        .detail(json!({"section": section.name, "mode": section.mode.as_str()}));
    tx.insert_section(&section, event)?;
    tx.section(&section.id)?.ok_or_else(|| gone(&section.name))
}

#[derive(Debug, Clone, Default)]
pub struct EditSection {
    pub name: Option<String>,
    pub mode: Option<SectionMode>,
    pub priority: Option<i64>,
    /// Insert directly after this section.
    pub after: Option<String>,
}

pub fn edit_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
    request: &EditSection,
) -> Result<Section> {
    let section = reference::section(tx, reference)?;
    let mut edit = SectionEdit::default();
    let mut said = Map::new();
    if let Some(name) = request.name.as_ref().filter(|name| **name != section.name) {
        check_free_name(tx, name)?;
        said.insert("name".into(), json!({"from": section.name, "to": name}));
        edit.name = Some(name.clone());
    }
    if let Some(mode) = request.mode.filter(|mode| *mode != section.mode) {
        match mode {
            // The holder of the section goes on with its tasks, and others may join it.
            SectionMode::Parallel => kernel::open_section(tx, &section.id, &caller.holder.id)?,
            SectionMode::Serial => refuse_if_in_use(tx, ctx, &section)?,
        }
        said.insert("mode".into(), json!({"from": section.mode.as_str(), "to": mode.as_str()}));
        edit.mode = Some(mode);
    }
    if let Some(priority) = request.priority {
        check_priority(priority)?;
        said.insert("priority".into(), json!({"from": section.priority, "to": priority}));
        edit.priority = Some(priority);
    }
    if let Some(other) = &request.after {
        let before = reference::section(tx, other)?;
        if before.id == section.id {
            return Err(Error::invalid("a section cannot come after itself"));
        }
        said.insert("after".into(), json!(before.name));
        edit.position = Some(make_room(tx, caller, &before, &section)?);
        edit.priority = Some(request.priority.unwrap_or(before.priority));
    }
    if !said.is_empty() {
        said.insert("section".into(), json!(section.name));
        let event = NewEvent::new(EventKind::SectionUpdated, &caller.holder.id).detail(Value::Object(said));
        tx.edit_section(&section.id, &edit, event)?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.section(&section.id)?.ok_or_else(|| gone(&section.name))
}

/// Moves every section after `before` by one position.
fn make_room(tx: &mut dyn Tx, caller: &Caller, before: &Section, moved: &Section) -> Result<i64> {
    for other in tx.sections()?.into_iter().rev() {
        if other.position > before.position && other.id != moved.id {
            let edit = SectionEdit { position: Some(other.position + 1), ..SectionEdit::default() };
            let event = NewEvent::new(EventKind::SectionUpdated, &caller.holder.id)
                .detail(json!({"section": other.name, "position": other.position + 1}));
            tx.edit_section(&other.id, &edit, event)?;
        }
    }
    Ok(before.position + 1)
}

/// Deletes a section that is empty, or with `release` removes its tasks from it first.
pub fn delete_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    reference: &str,
) -> Result<Section> {
    let section = reference::section(tx, reference)?;
    refuse_if_in_use(tx, ctx, &section)?;
    if section.tasks > 0 {
        return Err(Error::Invalid {
            message: format!(
                "section {:?} still has {}",
                section.name,
                if section.tasks == 1 { "1 task".to_owned() } else { format!("{} tasks", section.tasks) }
            ),
            hint: Some(Box::new(hints::list_section_tasks(quote(&section.name)))),
        });
    }
    let event =
        NewEvent::new(EventKind::SectionDeleted, &caller.holder.id).detail(json!({"section": section.name}));
    tx.delete_section(&section.id, event)?;
    Ok(section)
}

/// Makes `section` depend on `on`.
pub fn depend_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    section: &str,
    on: &str,
) -> Result<Section> {
    let section = reference::section(tx, section)?;
    let on = reference::section(tx, on)?;
    if let Some(mut path) = path_between(&tx.sections()?, &on.name, &section.name) {
        path.insert(0, section.name);
        return Err(Error::DependencyCycle { path });
    }
    if tx.add_section_dependency(&section.id, &on.id)? {
        say_dependency(tx, caller, &section, "dependsOn", &on)?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.section(&section.id)?.ok_or_else(|| gone(&section.name))
}

pub fn undepend_section(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    section: &str,
    on: &str,
) -> Result<Section> {
    let section = reference::section(tx, section)?;
    let on = reference::section(tx, on)?;
    if tx.remove_section_dependency(&section.id, &on.id)? {
        say_dependency(tx, caller, &section, "notOn", &on)?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.section(&section.id)?.ok_or_else(|| gone(&section.name))
}

fn say_dependency(
    tx: &mut dyn Tx,
    caller: &Caller,
    section: &Section,
    what: &str,
    on: &Section,
) -> Result<()> {
    let event = NewEvent::new(EventKind::SectionUpdated, &caller.holder.id)
        .detail(json!({"section": section.name, what: on.name}));
    tx.append(event)
}

fn path_between(sections: &[Section], from: &str, to: &str) -> Option<Vec<String>> {
    let mut open = vec![vec![from.to_owned()]];
    let mut seen = vec![from.to_owned()];
    while let Some(path) = open.pop() {
        let at = path.last()?;
        if at == to {
            return Some(path);
        }
        let here = sections.iter().find(|s| s.name == *at);
        for next in here.into_iter().flat_map(|s| &s.depends_on) {
            if !seen.contains(next) {
                seen.push(next.clone());
                open.push(path.iter().cloned().chain([next.clone()]).collect());
            }
        }
    }
    None
}

fn check_free_name(view: &dyn View, name: &str) -> Result<()> {
    text::check_section(name)?;
    match view.section_by_name(name)? {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("there is already a section {name:?}"))),
    }
}

/// Refuses if the section or any of its tasks has a live lease.
fn refuse_if_in_use(tx: &mut dyn Tx, ctx: &Context<'_>, section: &Section) -> Result<()> {
    let viewer = ctx.viewer(tx, None)?;
    let resource = Resource::section(&section.id);
    let mut leases: Vec<_> = section.lease.iter().cloned().collect();
    let filter = TaskFilter {
        statuses: Some(vec![crate::task::TaskStatus::InProgress, crate::task::TaskStatus::Review]),
        section: Some(section.id.clone()),
        limit: u64::from(u32::MAX),
        ..TaskFilter::default()
    };
    leases.extend(tx.list_tasks(&filter, &viewer)?.0.into_iter().filter_map(|task| task.lease));
    let live = leases.into_iter().find(|lease| lease.state(tx.now(), ctx.judge) == LeaseState::Live);
    match live {
        None => Ok(()),
        Some(lease) => {
            let queue = kernel::waiters_before(tx, &viewer, &resource, None)?;
            let locked = kernel::locked(tx, resource, &section.name, None, Some(lease), &queue)?;
            Err(Error::Locked(Box::new(locked)))
        }
    }
}

fn gone(name: &str) -> Error {
    Error::SectionNotFound { name: name.to_owned(), similar: Vec::new() }
}
