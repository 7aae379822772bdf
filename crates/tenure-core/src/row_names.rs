//! The names of tasks and sections, looked up for many of them at once.

use std::collections::{BTreeSet, HashMap};

use crate::error::{Result, TaskName};
use crate::id::{SectionId, TaskId};
use crate::lease::Resource;
use crate::store::{TaskLookup, View};

/// The names of some tasks and sections.
#[derive(Debug, Default)]
pub(crate) struct RowNames {
    tasks: HashMap<TaskId, TaskName>,
    sections: HashMap<SectionId, String>,
}

impl RowNames {
    /// Reads those that are not known yet, with at most two queries.
    pub(crate) fn learn(
        &mut self,
        view: &dyn View,
        tasks: impl IntoIterator<Item = TaskId>,
        sections: impl IntoIterator<Item = SectionId>,
    ) -> Result<()> {
        let tasks: BTreeSet<TaskId> = tasks.into_iter().filter(|id| !self.tasks.contains_key(id)).collect();
        let tasks = Vec::from_iter(tasks);
        let found = match tasks.as_slice() {
            [] => Vec::new(),
            [one] => view.find_tasks(TaskLookup::Id(one.as_str()), 1)?,
            all => view.find_tasks(TaskLookup::Ids(all), all.len())?,
        };
        self.tasks.extend(found.into_iter().map(|name| (TaskId::new(&name.id), name)));
        let sections: BTreeSet<SectionId> =
            sections.into_iter().filter(|id| !self.sections.contains_key(id)).collect();
        let sections = Vec::from_iter(sections);
        let found = match sections.as_slice() {
            [] => Vec::new(),
            [one] => view.section(one)?.into_iter().collect(),
            _ => view.sections()?,
        };
        self.sections.extend(found.into_iter().map(|section| (section.id, section.name)));
        Ok(())
    }

    /// Reads the tasks and sections that these are or refer to.
    pub(crate) fn learn_resources<'r>(
        &mut self,
        view: &dyn View,
        resources: impl Iterator<Item = &'r Resource> + Clone,
    ) -> Result<()> {
        let section = |resource: &Resource| resource.section_id().or_else(|| resource.ready_section());
        self.learn(view, resources.clone().filter_map(Resource::task_id), resources.filter_map(section))
    }

    pub(crate) fn task(&self, id: &TaskId) -> Option<&TaskName> {
        self.tasks.get(id)
    }

    pub(crate) fn section(&self, id: &SectionId) -> Option<&str> {
        self.sections.get(id).map(String::as_str)
    }

    /// A task's key or `section:NAME`; otherwise, or if it was deleted, the kind and the id.
    pub(crate) fn resource(&self, resource: &Resource) -> String {
        let section = || self.section(&resource.section_id()?).map(|name| format!("section:{name}"));
        let task = || self.task(&resource.task_id()?).map(|task| task.key.clone());
        section().or_else(task).unwrap_or_else(|| resource.to_string())
    }

    /// In words, what a ticket with this wish waits for.
    pub(crate) fn wish(&self, wish: &Resource) -> String {
        if let Some(id) = wish.task_id() {
            return self.task(&id).map_or_else(|| "a deleted task".to_owned(), |t| format!("task {}", t.key));
        }
        match wish.ready_section() {
            Some(id) => self
                .section(&id)
                .map_or_else(|| "a deleted section".to_owned(), |name| format!("any task of {name}")),
            None if wish.is_ready_work() => "any task".to_owned(),
            None => wish.to_string(),
        }
    }
}
