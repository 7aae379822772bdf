//! Importing a file again: the tasks that it adds and changes, and nothing else.
//!
//! An item stands for the task with its key; without a key, for a task with its title, preferably in the same section. A
//! field that the file gives replaces the task's; a field that the file omits or leaves empty stays. A status never
//! changes, because it belongs to holders and reviewers, and no task is deleted or moved within its section. What could not
//! be applied is reported. So a second import of the same file changes nothing.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::add::unique;
use super::depend::{record_dependency, record_removal};
use super::edit::{EditTask, edit_task};
use super::import::{Inserter, dependencies_of, find_cycle, indexes_by_key, name_at_line, status};
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::holder::Caller;
use crate::id::TaskId;
use crate::import::{Import, ImportedStatus, ImportedTask};
use crate::kernel;
use crate::lease::LeaseState;
use crate::store::{TaskFilter, Tx};
use crate::task::Task;

#[derive(Debug, Clone)]
pub struct ImportUpdate {
    /// In file order.
    pub tasks: Vec<UpdatedTask>,
    /// Tasks that are in the project and not in the file. If the file's tasks refer to the file, only tasks that refer
    /// to it as well.
    pub absent: Vec<TaskName>,
    pub new_sections: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct UpdatedTask {
    pub key: String,
    pub title: String,
    pub outcome: UpdateOutcome,
    /// Fields in which the file differs, and which were not changed.
    pub kept: Vec<KeptField>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum UpdateOutcome {
    Added,
    /// At least one field.
    Changed(Vec<FieldChange>),
    Unchanged,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// As in JSON.
    pub field: &'static str,
    pub from: Value,
    pub to: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptField {
    pub field: &'static str,
    /// What the file says.
    pub file: String,
    pub why: String,
}

pub fn update_import(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    import: &Import,
) -> Result<ImportUpdate> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let every = TaskFilter { limit: u64::from(u32::MAX), ..TaskFilter::default() };
    let (existing, _) = tx.list_tasks(&every, &viewer)?;
    let matches = match_items(import, &existing);
    let mut inserter = Inserter::new(tx, ctx, caller, import)?;

    let (mut ids, mut tasks) = (Vec::new(), Vec::new());
    for (item, matched) in import.tasks.iter().zip(&matches) {
        let (id, updated) = match matched.and_then(|at| existing.get(at)) {
            Some(task) => (task.id.clone(), update_fields(tx, ctx, caller, item, task)?),
            None => {
                let (id, key) = inserter.insert(tx, ctx, caller, item)?;
                let title = item.title.clone();
                (id, UpdatedTask { key, title, outcome: UpdateOutcome::Added, kept: Vec::new() })
            }
        };
        ids.push(id);
        tasks.push(updated);
    }
    update_dependencies(tx, caller, import, &existing, &ids, &mut tasks)?;
    kernel::work_appeared(tx, ctx)?;

    let matched: HashSet<usize> = matches.into_iter().flatten().collect();
    let of_file = |task: &Task| match (&import.source, &task.source_file) {
        (Some(file), Some(source)) => source.split('#').next() == Some(file),
        (Some(_), None) => false,
        (None, _) => true,
    };
    let absent = existing.iter().enumerate().filter(|(at, task)| !matched.contains(at) && of_file(task));
    let absent = absent.map(|(_, task)| kernel::name_of(task)).collect();
    Ok(ImportUpdate { tasks, absent, new_sections: inserter.new_sections })
}

/// The existing task of each item, as an index. No task belongs to two items.
fn match_items(import: &Import, existing: &[Task]) -> Vec<Option<usize>> {
    let mut by_key: HashMap<&str, usize> = HashMap::new();
    let mut by_lower_key: HashMap<String, Vec<usize>> = HashMap::new();
    let mut by_title: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, task) in existing.iter().enumerate() {
        by_key.insert(&task.key, at);
        by_lower_key.entry(task.key.to_ascii_lowercase()).or_default().push(at);
        by_title.entry(&task.title).or_default().push(at);
    }
    let keyed = |item: &ImportedTask| {
        let key = item.key.as_deref()?;
        let in_another_case = || match by_lower_key.get(&key.to_ascii_lowercase()).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        };
        by_key.get(key).copied().or_else(in_another_case)
    };
    let mut taken: HashSet<usize> = HashSet::new();
    let mut found: Vec<Option<usize>> =
        import.tasks.iter().map(|item| keyed(item).filter(|at| taken.insert(*at))).collect();
    for same_section in [true, false] {
        for (item, found) in import.tasks.iter().zip(&mut found) {
            if item.key.is_some() || found.is_some() {
                continue;
            }
            let candidates = by_title.get(item.title.as_str()).into_iter().flatten().copied();
            *found = candidates
                .filter(|at| !taken.contains(at))
                .find(|at| !same_section || section_of(&existing[*at]) == item.section.as_deref());
            taken.extend(*found);
        }
    }
    found
}

fn section_of(task: &Task) -> Option<&str> {
    task.section.as_ref().map(|section| section.name.as_str())
}

/// Applies everything but the dependencies.
fn update_fields(
    tx: &mut dyn Tx,
    ctx: &Context<'_>,
    caller: &Caller,
    item: &ImportedTask,
    task: &Task,
) -> Result<UpdatedTask> {
    let (mut changes, mut kept, mut edit) = (Vec::new(), Vec::new(), EditTask::default());
    let mut change = |field, from: Value, to: Value| changes.push(FieldChange { field, from, to });
    if item.title != task.title {
        change("title", json!(task.title), json!(item.title));
        edit.title = Some(item.title.clone());
    }
    if !item.description.is_empty() && item.description != task.description {
        change("description", json!(task.description), json!(item.description));
        edit.description = Some(item.description.clone());
    }
    if item.source_file.is_some() && item.source_file != task.source_file {
        change("sourceFile", json!(task.source_file), json!(item.source_file));
        edit.source_file = Some(item.source_file.clone());
    }
    if let Some(priority) = item.priority.filter(|priority| *priority != task.priority) {
        change("priority", json!(task.priority), json!(priority));
        edit.priority = Some(priority);
    }
    let labels = unique(&item.labels);
    if !labels.is_empty() && sorted(&labels) != sorted(&task.labels) {
        change("labels", json!(task.labels), json!(labels));
        edit.remove_labels = task.labels.iter().filter(|label| !labels.contains(label)).cloned().collect();
        edit.add_labels = labels;
    }
    if item.section.is_some() && item.section.as_deref() != section_of(task) {
        let holder = task.lease.as_ref().filter(|lease| lease.state(tx.now(), ctx.judge) == LeaseState::Live);
        match holder {
            Some(lease) => kept.push(KeptField {
                field: "section",
                file: item.section.clone().unwrap_or_default(),
                why: format!("{} holds the task", lease.holder),
            }),
            None => {
                change("section", json!(section_of(task)), json!(item.section));
                edit.section = Some(item.section.clone());
            }
        }
    }
    if item.status != ImportedStatus::Pending && status(item.status) != task.status {
        kept.push(KeptField {
            field: "status",
            file: status(item.status).to_string(),
            why: format!("it is {} here, and an import never changes a status", task.status),
        });
    }
    if !edit.is_empty() {
        edit_task(tx, ctx, caller, task.id.as_str(), &edit)?;
    }
    let outcome = if changes.is_empty() { UpdateOutcome::Unchanged } else { UpdateOutcome::Changed(changes) };
    Ok(UpdatedTask { key: task.key.clone(), title: item.title.clone(), outcome, kept })
}

fn sorted(words: &[String]) -> Vec<&String> {
    let mut words: Vec<_> = words.iter().collect();
    words.sort();
    words
}

/// Makes the dependencies of each item those of the file, if it gives any. `ids` and `tasks` are those of the items.
fn update_dependencies(
    tx: &mut dyn Tx,
    caller: &Caller,
    import: &Import,
    existing: &[Task],
    ids: &[TaskId],
    tasks: &mut [UpdatedTask],
) -> Result<()> {
    // The graph as it will be: the tasks of the project, then those that the file adds.
    let mut keys: Vec<String> = existing.iter().map(|task| task.key.clone()).collect();
    let mut names = keys.clone();
    let mut node_of: HashMap<TaskId, usize> =
        (0..).zip(existing).map(|(at, task)| (task.id.clone(), at)).collect();
    let by_key: HashMap<&str, usize> =
        (0..).zip(existing).map(|(at, task)| (task.key.as_str(), at)).collect();
    let mut needs: Vec<Vec<usize>> = existing
        .iter()
        .map(|task| task.depends_on.iter().filter_map(|key| by_key.get(key.as_str()).copied()).collect())
        .collect();
    for ((id, item), updated) in ids.iter().zip(&import.tasks).zip(tasks.iter()) {
        let at = *node_of.entry(id.clone()).or_insert_with(|| {
            keys.push(updated.key.clone());
            names.push(String::new());
            needs.push(Vec::new());
            keys.len() - 1
        });
        names[at] = name_at_line(&updated.key, item.line);
    }
    let nodes: HashMap<usize, &TaskId> = node_of.iter().map(|(id, at)| (*at, id)).collect();
    let in_file = indexes_by_key(import);
    let mut edits: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, item) in import.tasks.iter().enumerate() {
        let wanted = dependencies_of(tx, &in_file, item, ids)?;
        let mut wanted: Vec<usize> = wanted.iter().filter_map(|id| node_of.get(id).copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(node) = ids.get(at).and_then(|id| node_of.get(id)).copied() else { continue };
        let mut before = needs[node].clone();
        before.sort_unstable();
        if !wanted.is_empty() && wanted != before {
            edits.push((at, std::mem::replace(&mut needs[node], wanted)));
        }
    }
    if edits.is_empty() {
        return Ok(());
    }
    if let Some(cycle) = find_cycle(&needs) {
        return Err(Error::DependencyCycle { path: cycle.iter().map(|node| names[*node].clone()).collect() });
    }
    for (at, before) in edits {
        let (Some(id), Some(updated)) = (ids.get(at), tasks.get_mut(at)) else { continue };
        let after = &needs[node_of[id]];
        for gone in before.iter().filter(|on| !after.contains(on)) {
            if let Some(on) = nodes.get(gone) {
                tx.remove_dependency(id, on)?;
                record_removal(tx, caller, id, &keys[*gone])?;
            }
        }
        for new in after.iter().filter(|on| !before.contains(on)) {
            if let Some(on) = nodes.get(new) {
                tx.add_dependency(id, on)?;
                if updated.outcome != UpdateOutcome::Added {
                    record_dependency(tx, caller, id, &keys[*new])?;
                }
            }
        }
        let named = |nodes: &[usize]| -> Vec<&String> { nodes.iter().map(|on| &keys[*on]).collect() };
        let change = FieldChange { field: "dependsOn", from: json!(named(&before)), to: json!(named(after)) };
        match &mut updated.outcome {
            UpdateOutcome::Added => {}
            UpdateOutcome::Changed(changes) => changes.push(change),
            outcome @ UpdateOutcome::Unchanged => *outcome = UpdateOutcome::Changed(vec![change]),
        }
    }
    Ok(())
}
