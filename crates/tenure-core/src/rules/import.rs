//! Importing tasks: all of them or none.

use std::collections::HashMap;

use super::add::{free_key, insert, next_key, next_position, unique};
use super::sections::{AddSection, add_section};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::import::{Import, ImportedStatus};
use crate::kernel;
use crate::reference;
use crate::section::SectionMode;
use crate::store::{NewTask, Tx};
use crate::task::{DEFAULT_PRIORITY, TaskStatus};

#[derive(Debug, Clone)]
pub struct Imported {
    /// Keys in file order.
    pub tasks: Vec<String>,
    pub new_sections: Vec<String>,
}

pub fn import(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, import: &Import) -> Result<Imported> {
    let mut taken = Imported { tasks: Vec::new(), new_sections: Vec::new() };
    let mut sections: HashMap<&str, SectionId> = HashMap::new();
    for section in &import.sections {
        let found = match tx.section_by_name(&section.name)? {
            Some(found) => found,
            None => {
                taken.new_sections.push(section.name.clone());
                let mode = if section.serial { SectionMode::Serial } else { SectionMode::Parallel };
                let request = AddSection { name: section.name.clone(), mode, priority: section.priority };
                add_section(tx, ctx, caller, &request)?
            }
        };
        sections.insert(&section.name, found.id);
    }
    refuse_cycles(import)?;

    let mut ids: Vec<TaskId> = Vec::with_capacity(import.tasks.len());
    let mut by_key: HashMap<&str, usize> = HashMap::new();
    let mut last_positions: HashMap<Option<&str>, i64> = HashMap::new();
    for (index, task) in import.tasks.iter().enumerate() {
        let section = task.section.as_deref().and_then(|name| sections.get(name)).cloned();
        let key = match &task.key {
            Some(key) => free_key(tx, key).map_err(|e| at_line(e, task.line))?,
            None => next_key(tx)?,
        };
        let position = match last_positions.get(&task.section.as_deref()) {
            Some(last) => last + (1 << 20),
            None => next_position(tx, section.as_ref())?,
        };
        last_positions.insert(task.section.as_deref(), position);
        let new = NewTask {
            description: task.description.clone(),
            status: status(task.status),
            section,
            source_file: task.source_file.clone(),
            priority: task.priority.unwrap_or(DEFAULT_PRIORITY),
            position,
            labels: unique(&task.labels),
            ..NewTask::new(ctx.ids.task(), &key, &task.title)
        };
        insert(tx, &new, &caller.holder.id)?;
        if let Some(key) = &task.key {
            by_key.insert(key, index);
        }
        taken.tasks.push(key);
        ids.push(new.id);
    }
    for (task, id) in import.tasks.iter().zip(&ids) {
        for other in &task.depends_on_items {
            if let Some(on) = ids.get(*other) {
                tx.add_dependency(id, on)?;
            }
        }
        for key in &task.depends_on {
            let on = match by_key.get(key.as_str()) {
                Some(index) => ids[*index].clone(),
                None => TaskId::new(reference::task(tx, key).map_err(|e| at_line(e, task.line))?.id),
            };
            tx.add_dependency(id, &on)?;
        }
    }
    kernel::work_appeared(tx, ctx)?;
    Ok(taken)
}

fn status(status: ImportedStatus) -> TaskStatus {
    match status {
        ImportedStatus::Pending => TaskStatus::Pending,
        ImportedStatus::Review => TaskStatus::Review,
        ImportedStatus::Completed => TaskStatus::Completed,
        ImportedStatus::Failed => TaskStatus::Failed,
        ImportedStatus::Skipped => TaskStatus::Skipped,
    }
}

fn at_line(error: Error, line: usize) -> Error {
    Error::invalid(format!("line {line}: {error}"))
}

/// Existing tasks cannot depend on new ones, so a cycle can only lie within the file.
fn refuse_cycles(import: &Import) -> Result<()> {
    let index: HashMap<&str, usize> =
        import.tasks.iter().enumerate().filter_map(|(i, t)| t.key.as_deref().map(|k| (k, i))).collect();
    let needs: Vec<Vec<usize>> = import
        .tasks
        .iter()
        .map(|t| {
            let by_key = t.depends_on.iter().filter_map(|k| index.get(k.as_str()).copied());
            by_key.chain(t.depends_on_items.iter().copied()).collect()
        })
        .collect();
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (task, on) in needs.iter().enumerate() {
        for other in on {
            if let Some(list) = waiting.get_mut(*other) {
                list.push(task);
            }
        }
    }
    let mut free: Vec<usize> = (0..needs.len()).filter(|i| missing[*i] == 0).collect();
    while let Some(done) = free.pop() {
        for task in std::mem::take(&mut waiting[done]) {
            missing[task] -= 1;
            if missing[task] == 0 {
                free.push(task);
            }
        }
    }
    let Some(start) = missing.iter().position(|n| *n > 0) else { return Ok(()) };
    // Every remaining task depends on another remaining one, so following dependencies closes a cycle.
    let name = |i: usize| {
        let task = &import.tasks[i];
        task.key.clone().unwrap_or_else(|| format!("{:?} (line {})", task.title, task.line))
    };
    let mut path = vec![start];
    loop {
        let at = path[path.len() - 1];
        let next = needs[at].iter().copied().find(|n| missing[*n] > 0).unwrap_or(start);
        if let Some(back) = path.iter().position(|p| *p == next) {
            path.push(next);
            return Err(Error::DependencyCycle { path: path[back..].iter().map(|i| name(*i)).collect() });
        }
        path.push(next);
    }
}
