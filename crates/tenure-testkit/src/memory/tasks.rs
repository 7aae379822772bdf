//! Tasks.

use tenure_core::error::TaskName;
use tenure_core::event::NewEvent;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::lease::Resource;
use tenure_core::section::SectionMode;
use tenure_core::store::{
    ComputedState, NewTask, ReadTasks, Reserved, SortBy, TaskEdit, TaskFilter, TaskLookup, TaskOrder, Viewer,
    WriteFeed, WriteTasks, section_column,
};
use tenure_core::task::{SectionRef, Task, TaskStatus};
use tenure_core::{Error, Result};

use super::MemoryTx;
use super::state::{State, TaskRow, blocks};

impl MemoryTx {
    fn whole_task(&self, id: &TaskId, row: &TaskRow, viewer: &Viewer) -> Task {
        let state = &self.state;
        let mut depends_on: Vec<String> = state
            .task_deps
            .iter()
            .filter(|(task, _)| task == id)
            .filter_map(|(_, on)| state.tasks.get(on).map(|task| task.key.clone()))
            .collect();
        depends_on.sort();
        let mut blocked_by: Vec<String> = state.unfinished_dependencies(id).map(|t| t.key.clone()).collect();
        blocked_by.sort();
        if let Some(section) = &row.section {
            let mut before: Vec<String> =
                state.unfinished_sections_before(section).map(|s| format!("section:{}", s.name)).collect();
            before.sort();
            blocked_by.append(&mut before);
        }
        let section = row.section.as_ref().and_then(|id| {
            state.sections.get(id).map(|section| SectionRef {
                id: id.clone(),
                name: section.name.clone(),
                serial: section.mode == SectionMode::Serial,
            })
        });
        Task {
            depends_on,
            attempts: row.attempts,
            rejections: row.rejections,
            updated_at: row.updated_at,
            ready: state.is_ready(id, row, self.now, viewer),
            blocked_by,
            lease: state.open_lease(&Resource::task(id)).cloned(),
            ..row.task.stored(section, row.created_at)
        }
    }

    /// The rows that match, in working order.
    fn matching(&self, filter: &TaskFilter, viewer: &Viewer) -> Vec<(&TaskId, &TaskRow)> {
        let fits = |(id, row): &(&TaskId, &TaskRow)| {
            let in_state = |state: &ComputedState| self.is_in_state(*state, id, row, viewer);
            let wanted = |statuses: &Vec<TaskStatus>| {
                statuses.contains(&row.status) || filter.states.iter().any(in_state)
            };
            filter.statuses.as_ref().is_none_or(wanted)
                && matches(&self.state, id, row, filter)
                && (!filter.ready || self.state.is_ready(id, row, self.now, viewer))
        };
        self.state.in_order().into_iter().filter(fits).collect()
    }

    fn is_in_state(&self, state: ComputedState, id: &TaskId, row: &TaskRow, viewer: &Viewer) -> bool {
        let task = self.whole_task(id, row, viewer);
        match state {
            ComputedState::Blocked => task.status == TaskStatus::Pending && !task.blocked_by.is_empty(),
            ComputedState::Ready => task.ready,
            ComputedState::Lapsed => {
                let lapsed = task.lease.as_ref().is_some_and(|lease| !blocks(lease, self.now, viewer));
                task.status == TaskStatus::InProgress && lapsed
            }
        }
    }

    fn row(&mut self, id: &TaskId) -> Result<&mut TaskRow> {
        self.state.tasks.get_mut(id).ok_or_else(|| Error::store(format!("task {id} is gone")))
    }
}

fn name(id: &TaskId, task: &TaskRow) -> TaskName {
    TaskName { id: id.to_string(), key: task.key.clone(), title: task.title.clone(), status: task.status }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

/// Sorts tasks that are in working order.
fn sort(tasks: &mut [(&TaskId, &TaskRow)], order: TaskOrder) {
    let prefix = |task: &TaskRow| task.key.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    tasks.sort_by(|(_, a), (_, b)| match order.by {
        SortBy::Working => std::cmp::Ordering::Equal,
        SortBy::Key => (prefix(a), a.key.len(), &a.key).cmp(&(prefix(b), b.key.len(), &b.key)),
        SortBy::Title => {
            (a.title.to_ascii_lowercase(), &a.title).cmp(&(b.title.to_ascii_lowercase(), &b.title))
        }
        SortBy::Status => a.status.cmp(&b.status),
        SortBy::Priority => a.priority.cmp(&b.priority),
        SortBy::Created => a.created_at.cmp(&b.created_at),
        SortBy::Updated => a.updated_at.cmp(&b.updated_at),
    });
    if order.descending {
        tasks.reverse();
    }
}

fn matches(state: &State, id: &TaskId, task: &TaskRow, filter: &TaskFilter) -> bool {
    let held = |holder| state.open_lease(&Resource::task(id)).is_some_and(|lease| lease.held_by(holder));
    filter.section.as_ref().is_none_or(|wanted| section_column(task.section.as_ref()) == wanted.as_str())
        && filter.search.as_ref().is_none_or(|text| {
            contains(&task.title, text) || contains(&task.description, text) || contains(&task.key, text)
        })
        && filter.label.as_ref().is_none_or(|label| task.labels.contains(label))
        && filter.held_by.as_ref().is_none_or(held)
}

impl ReadTasks for MemoryTx {
    fn task(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        Ok(self.state.tasks.get(id).map(|row| self.whole_task(id, row, viewer)))
    }

    fn task_row(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        Ok(self.task(id, viewer)?.map(|task| Task { ready: false, ..task }))
    }

    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>> {
        let fits = |id: &TaskId, task: &TaskRow| match lookup {
            TaskLookup::Id(wanted) => id.as_str() == wanted,
            TaskLookup::Ids(wanted) => wanted.contains(id),
            TaskLookup::Key(wanted) => task.key == wanted,
            TaskLookup::IdPrefix(wanted) => id.as_str().starts_with(wanted),
            TaskLookup::KeyIgnoringCase(wanted) => task.key.eq_ignore_ascii_case(wanted),
            TaskLookup::Title(wanted) => task.title == wanted,
            TaskLookup::Titles(wanted) => wanted.contains(&task.title.as_str()),
            TaskLookup::TitlePart(wanted) => contains(&task.title, wanted),
        };
        let found = self.state.tasks.iter().filter(|(id, task)| fits(id, task));
        Ok(found.map(|(id, task)| name(id, task)).take(limit).collect())
    }

    fn page_of_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>> {
        let mut found = self.matching(filter, viewer);
        sort(&mut found, filter.order);
        let skip = usize::try_from(filter.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let page = found.into_iter().skip(skip).take(take);
        Ok(page.map(|(id, row)| self.whole_task(id, row, viewer)).collect())
    }

    fn count_matches(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64> {
        Ok(self.matching(filter, viewer).len() as u64)
    }

    fn next_unreserved(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        let wanted = |task: &TaskRow| section.is_none() || task.section.as_ref() == section;
        let free = |id: &TaskId, task: &TaskRow| {
            !reserved.tasks.contains(id)
                && task.section.as_ref().is_none_or(|section| !reserved.sections.contains(section))
        };
        let mut tasks = self.state.in_order().into_iter();
        let first = tasks.find(|(id, task)| {
            wanted(task) && free(id, task) && self.state.is_ready(id, task, self.now, viewer)
        });
        Ok(first.map(|(id, _)| id.clone()))
    }

    fn count_tasks(&self) -> Result<Vec<(TaskStatus, u64)>> {
        let count = |status| self.state.tasks.values().filter(|task| task.status == status).count() as u64;
        let all = TaskStatus::ALL.into_iter().map(|status| (status, count(status)));
        Ok(all.filter(|(_, count)| *count > 0).collect())
    }

    fn edges_from(&self, task: &TaskId) -> Result<Vec<(TaskName, TaskName)>> {
        let mut reached = vec![task.clone()];
        let mut edges = Vec::new();
        let mut at = 0;
        while let Some(from) = reached.get(at).cloned() {
            at += 1;
            for (_, on) in self.state.task_deps.iter().filter(|(task, _)| *task == from) {
                let (Some(a), Some(b)) = (self.state.tasks.get(&from), self.state.tasks.get(on)) else {
                    continue;
                };
                edges.push((name(&from, a), name(on, b)));
                if !reached.contains(on) {
                    reached.push(on.clone());
                }
            }
        }
        Ok(edges)
    }

    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>> {
        let waiting = self.state.task_deps.iter().filter(|(_, on)| on == task);
        let mut names: Vec<_> =
            waiting.filter_map(|(id, _)| self.state.tasks.get(id).map(|row| name(id, row))).collect();
        names.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(names)
    }

    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>> {
        let inside = self.state.tasks.values().filter(|task| task.section.as_ref() == section);
        Ok(inside.map(|task| task.position).max())
    }

    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>> {
        let inside = self.state.tasks.values().filter(|task| task.section.as_ref() == section);
        Ok(inside.map(|task| task.position).filter(|position| *position > after).min())
    }
}

impl WriteTasks for MemoryTx {
    fn take_task_number(&mut self) -> Result<i64> {
        self.state.last_task_number += 1;
        Ok(self.state.last_task_number)
    }

    fn insert_task(&mut self, new: &NewTask, event: NewEvent<'_>) -> Result<()> {
        let taken = |(id, task): (&TaskId, &TaskRow)| *id == new.id || task.key == new.key;
        if self.state.tasks.iter().any(taken) {
            return Err(Error::store(format!("task {} is there already", new.key)));
        }
        let row = TaskRow {
            task: new.clone(),
            attempts: 0,
            rejections: 0,
            created_at: self.now,
            updated_at: self.now,
        };
        self.state.tasks.insert(new.id.clone(), row);
        self.append(event)
    }

    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()> {
        let now = self.now;
        let Ok(row) = self.row(id) else { return Ok(()) };
        edit.apply(&mut row.task);
        row.attempts = edit.attempts.unwrap_or(row.attempts);
        row.rejections = edit.rejections.unwrap_or(row.rejections);
        row.updated_at = now;
        match event {
            Some(event) => self.append(event),
            None => Ok(()),
        }
    }

    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()> {
        let now = self.now;
        let row = self.row(id)?;
        row.task.status = to;
        row.updated_at = now;
        self.append(event)
    }

    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()> {
        self.state.task_deps.retain(|(task, on)| task != id && on != id);
        self.state.messages.retain(|_, message| message.task.as_ref() != Some(id));
        self.state.tasks.remove(id);
        self.append(event)
    }

    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        if task == on {
            return Ok(false);
        }
        if !self.state.tasks.contains_key(task) || !self.state.tasks.contains_key(on) {
            return Err(Error::store("a dependency needs two tasks"));
        }
        Ok(self.state.task_deps.insert((task.clone(), on.clone())))
    }

    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool> {
        Ok(self.state.task_deps.remove(&(task.clone(), on.clone())))
    }

    fn spread_positions(&mut self, section: Option<&SectionId>) -> Result<()> {
        let mut inside: Vec<_> =
            self.state.tasks.iter_mut().filter(|(_, task)| task.section.as_ref() == section).collect();
        inside.sort_by_key(|(id, task)| (task.position, (*id).clone()));
        let mut position = 0;
        for (_, task) in inside {
            position += 1 << 20;
            task.task.position = position;
        }
        Ok(())
    }
}
