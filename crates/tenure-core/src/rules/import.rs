//! Importing tasks: all of them or none.

use std::collections::HashMap;

use super::add::{free_key, insert, next_key, next_position, unique};
use super::sections::{AddSection, add_section};
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::holder::Caller;
use crate::id::{SectionId, TaskId};
use crate::import::{Import, ImportedStatus, ImportedTask};
use crate::kernel;
use crate::reference;
use crate::section::SectionMode;
use crate::store::{NewTask, TaskLookup, Tx, Viewer};
use crate::task::{DEFAULT_PRIORITY, TaskStatus};

/// How many tasks of one title are compared with an imported one.
const SAME_TITLE: usize = 10;

#[derive(Debug, Clone)]
pub struct Imported {
    /// Keys in file order.
    pub tasks: Vec<String>,
    pub new_sections: Vec<String>,
}

/// Adds every task of the file. Refused if one of them is in the project already: [`super::update_import`] is for that.
pub fn import(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, import: &Import) -> Result<Imported> {
    let viewer = ctx.viewer(tx, None)?;
    refuse_known(tx, import, &viewer)?;
    let mut inserter = Inserter::new(tx, ctx, caller, import)?;
    let needs = dependencies_within(import);
    if let Some(cycle) = find_cycle(&needs) {
        return Err(cycle_error(import, &cycle));
    }
    let mut ids: Vec<TaskId> = Vec::with_capacity(import.tasks.len());
    let mut keys = Vec::with_capacity(import.tasks.len());
    for task in &import.tasks {
        let (id, key) = inserter.insert(tx, ctx, caller, task)?;
        ids.push(id);
        keys.push(key);
    }
    let by_key = indexes_by_key(import);
    for (task, id) in import.tasks.iter().zip(&ids) {
        for on in dependencies_of(tx, &by_key, task, &ids)? {
            tx.add_dependency(id, &on)?;
        }
    }
    kernel::work_appeared(tx, ctx)?;
    Ok(Imported { tasks: keys, new_sections: inserter.new_sections })
}

/// A task is known if its key is taken, or if it has no key and a task of the same title came from the same place.
fn refuse_known(tx: &dyn Tx, import: &Import, viewer: &Viewer) -> Result<()> {
    let has_place = |task: &&ImportedTask| task.key.is_none() && task.source_file.is_some();
    let titles: Vec<&str> = import.tasks.iter().filter(has_place).map(|task| task.title.as_str()).collect();
    // One query for all titles, because not every store has an index of titles.
    let found = match titles.as_slice() {
        [] => Vec::new(),
        titles => tx.find_tasks(TaskLookup::Titles(titles), usize::MAX)?,
    };
    let mut by_title: HashMap<&str, Vec<&TaskName>> = HashMap::new();
    for other in &found {
        by_title.entry(&other.title).or_default().push(other);
    }
    for task in &import.tasks {
        let known = |what: String| Err(Error::AlreadyImported { line: task.line, what });
        if let Some(key) = &task.key {
            if let Some(other) = tx.find_tasks(TaskLookup::Key(key), 1)?.first() {
                return known(format!("the key {key} is already used by {:?}", other.title));
            }
        } else if task.source_file.is_some() {
            for other in by_title.get(task.title.as_str()).into_iter().flatten().take(SAME_TITLE) {
                let row = tx.task_row(&TaskId::new(&other.id), viewer)?;
                if row.is_some_and(|row| row.source_file == task.source_file) {
                    return known(format!("the task {:?} was already imported as {}", task.title, other.key));
                }
            }
        }
    }
    Ok(())
}

/// Inserts tasks at the ends of their sections.
pub(super) struct Inserter {
    sections: HashMap<String, SectionId>,
    last_positions: HashMap<Option<String>, i64>,
    pub(super) new_sections: Vec<String>,
}

impl Inserter {
    /// Adds the sections that the project does not have yet.
    pub(super) fn new(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, import: &Import) -> Result<Self> {
        let (mut sections, mut new_sections) = (HashMap::new(), Vec::new());
        for section in &import.sections {
            let found = match tx.section_by_name(&section.name)? {
                Some(found) => found,
                None => {
                    new_sections.push(section.name.clone());
                    let mode = if section.serial { SectionMode::Serial } else { SectionMode::Parallel };
                    let request = AddSection { name: section.name.clone(), mode, priority: section.priority };
                    add_section(tx, ctx, caller, &request)?
                }
            };
            sections.insert(section.name.clone(), found.id);
        }
        Ok(Self { sections, last_positions: HashMap::new(), new_sections })
    }

    /// The id and the key of the new task.
    pub(super) fn insert(
        &mut self,
        tx: &mut dyn Tx,
        ctx: &Context<'_>,
        caller: &Caller,
        task: &ImportedTask,
    ) -> Result<(TaskId, String)> {
        let section = task.section.as_deref().and_then(|name| self.sections.get(name)).cloned();
        let key = match &task.key {
            Some(key) => free_key(tx, key).map_err(|e| at_line(e, task.line))?,
            None => next_key(tx)?,
        };
        let position = match self.last_positions.get(&task.section) {
            Some(last) => last + (1 << 20),
            None => next_position(tx, section.as_ref())?,
        };
        self.last_positions.insert(task.section.clone(), position);
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
        Ok((new.id, key))
    }
}

/// What the file says that `task` depends on. `ids` are those of the file's tasks, and `by_key` their indexes.
pub(super) fn dependencies_of(
    tx: &dyn Tx,
    by_key: &HashMap<&str, usize>,
    task: &ImportedTask,
    ids: &[TaskId],
) -> Result<Vec<TaskId>> {
    let mut found: Vec<TaskId> =
        task.depends_on_items.iter().filter_map(|at| ids.get(*at)).cloned().collect();
    for key in &task.depends_on {
        found.push(match by_key.get(key.as_str()).and_then(|at| ids.get(*at)) {
            Some(id) => id.clone(),
            None => TaskId::new(reference::task(tx, key).map_err(|e| at_line(e, task.line))?.id),
        });
    }
    Ok(found)
}

pub(super) fn status(status: ImportedStatus) -> TaskStatus {
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

pub(super) fn indexes_by_key(import: &Import) -> HashMap<&str, usize> {
    import.tasks.iter().enumerate().filter_map(|(at, task)| Some((task.key.as_deref()?, at))).collect()
}

/// The dependencies of each task on other tasks of the file, as indexes.
fn dependencies_within(import: &Import) -> Vec<Vec<usize>> {
    let index = indexes_by_key(import);
    let of = |task: &ImportedTask| {
        let by_key = task.depends_on.iter().filter_map(|key| index.get(key.as_str()).copied());
        by_key.chain(task.depends_on_items.iter().copied()).collect()
    };
    import.tasks.iter().map(of).collect()
}

/// The error for a cycle through tasks of the file.
fn cycle_error(import: &Import, cycle: &[usize]) -> Error {
    let name = |at: &usize| {
        let task = import.tasks.get(*at);
        task.map(|task| name_at_line(task.key.as_deref().unwrap_or(&task.title), task.line))
    };
    Error::DependencyCycle { path: cycle.iter().filter_map(name).collect() }
}

pub(super) fn name_at_line(name: &str, line: usize) -> String {
    format!("{name} (line {line})")
}

/// The nodes of a cycle, with the first again at the end. Iterative, because a chain may be long.
pub(super) fn find_cycle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
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
    let start = missing.iter().position(|n| *n > 0)?;
    // Every remaining task depends on another remaining one, so following dependencies closes a cycle.
    let mut path = vec![start];
    loop {
        let at = path[path.len() - 1];
        let next = needs[at].iter().copied().find(|n| missing[*n] > 0).unwrap_or(start);
        if let Some(back) = path.iter().position(|p| *p == next) {
            path.push(next);
            return Some(path.split_off(back));
        }
        path.push(next);
    }
}
