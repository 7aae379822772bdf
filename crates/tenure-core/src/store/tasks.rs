//! Rows of tasks and of their dependencies.

use super::columns::{Column, tasks};
use super::rows::{Reader, Row, Values, json};
use super::task_filter::TaskFilter;
use crate::clock::Timestamp;
use crate::error::{Result, TaskName};
use crate::event::NewEvent;
use crate::id::{SectionId, TaskId};
use crate::lease::Lease;
use crate::store::Viewer;
use crate::task::{DEFAULT_PRIORITY, SectionRef, Task, TaskStatus};

/// How a task may be looked up.
#[derive(Debug, Clone, Copy)]
pub enum TaskLookup<'a> {
    Id(&'a str),
    Ids(&'a [TaskId]),
    Key(&'a str),
    /// A key in lower case, compared without regard to the case of ASCII letters.
    KeyIgnoringCase(&'a str),
    /// Hex digits and dashes, lower case.
    IdPrefix(&'a str),
    Title(&'a str),
    Titles(&'a [&'a str]),
    /// Any part of the title, ignoring case.
    TitlePart(&'a str),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NewTask {
    pub id: TaskId,
    pub key: String,
    pub title: String,
    pub description: String,
    pub status: TaskStatus,
    pub section: Option<SectionId>,
    pub source_file: Option<String>,
    pub priority: i64,
    pub position: i64,
    pub labels: Vec<String>,
}

/// Changes to a task; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct TaskEdit {
    pub title: Option<String>,
    pub description: Option<String>,
    pub section: Option<Option<SectionId>>,
    pub source_file: Option<Option<String>>,
    pub priority: Option<i64>,
    pub position: Option<i64>,
    pub labels: Option<Vec<String>>,
    pub attempts: Option<u32>,
    pub rejections: Option<u32>,
}

/// Ready work that is reserved for earlier waiters (Q1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reserved {
    pub tasks: Vec<TaskId>,
    /// The serial sections of those tasks: a claim of one of their tasks takes the whole section.
    pub sections: Vec<SectionId>,
}

impl Reserved {
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

pub trait ReadTasks {
    fn task(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>>;
    /// The task without its readiness, which is left false.
    fn task_row(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>>;
    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>>;
    /// The tasks of one page that match. In working order, its cost does not grow with the number of tasks.
    fn page_of_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>>;
    /// How many tasks match on all pages. The cost does not grow with the number of tasks if the filter is only
    /// [by status](TaskFilter::is_by_status).
    fn count_matches(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64>;
    /// A page, and how many tasks match in all.
    fn list_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<(Vec<Task>, u64)> {
        let tasks = self.page_of_tasks(filter, viewer)?;
        let seen = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        let total = if filter.offset == 0 && seen < filter.limit {
            seen
        } else {
            self.count_matches(filter, viewer)?
        };
        Ok((tasks, total))
    }
    /// The first ready task in working order. Its cost does not grow with the number of tasks.
    fn next_ready(&self, section: Option<&SectionId>, viewer: &Viewer) -> Result<Option<TaskId>> {
        self.next_unreserved(section, &Reserved::default(), viewer)
    }
    /// The first ready task in working order that is not reserved.
    fn next_unreserved(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>>;
    fn count_tasks(&self) -> Result<Vec<(TaskStatus, u64)>>;
    /// Every edge `task → what it depends on` that can be reached from `task`, with the keys of both ends.
    fn edges_from(&self, task: &TaskId) -> Result<Vec<(TaskName, TaskName)>>;
    /// The tasks that depend on this one.
    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>>;
    /// Positions in a section: the greatest, and the smallest beyond `after`.
    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>>;
    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>>;
}

pub trait WriteTasks {
    /// Draws the number of the next task that is added without a key: `T1`, `T2` …
    fn take_task_number(&mut self) -> Result<i64>;
    fn insert_task(&mut self, task: &NewTask, event: NewEvent<'_>) -> Result<()>;
    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()>;
    /// A status never changes without its event (T1).
    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()>;
    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()>;
    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool>;
    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool>;
    /// Gives every task of a section a new position with gaps between them, in the same order.
    fn spread_positions(&mut self, section: Option<&SectionId>) -> Result<()>;
}

/// The columns of a [`TaskName`], which are the first columns of a task.
pub fn name_columns() -> &'static [Column] {
    tasks::TABLE.columns.split_at(tasks::status.at + 1).0
}

pub fn read_name(row: Reader<'_>) -> Result<TaskName> {
    row.naming(&tasks::TABLE, |row| {
        Ok(TaskName {
            id: row.string(tasks::id)?,
            key: row.key(tasks::key)?,
            title: row.string(tasks::title)?,
            status: row.parsed(tasks::status, TaskStatus::parse)?,
        })
    })
}

/// How many columns [`read_task`] reads before the lease: those of the task, and its section's name and mode.
pub const TASK_WIDTH: usize = tasks::TABLE.columns.len() + 2;

/// Reads a task with its section, and its lease from column `lease` on. The store adds its dependencies and its
/// readiness.
pub fn read_task(row: &dyn Row, lease: usize) -> Result<Task> {
    let columns = Reader::new(row, 0);
    let section = match columns.text(tasks::section_id)? {
        NO_SECTION => None,
        id => Some(SectionRef {
            id: SectionId::new(id),
            name: row.text(TASK_WIDTH - 2)?.unwrap_or_default().to_owned(),
            serial: row.text(TASK_WIDTH - 1)? == Some("serial"),
        }),
    };
    let lease = Lease::read_joined(row, lease)?;
    columns.naming(&tasks::TABLE, |row| {
        Ok(Task {
            id: TaskId::new(row.text(tasks::id)?),
            key: row.key(tasks::key)?,
            title: row.string(tasks::title)?,
            description: row.string(tasks::description)?,
            status: row.parsed(tasks::status, TaskStatus::parse)?,
            section,
            source_file: row.optional_string(tasks::source_file)?,
            priority: row.int(tasks::priority)?,
            position: row.int(tasks::position)?,
            depends_on: Vec::new(),
            labels: row.json(tasks::labels)?,
            attempts: row.narrow(tasks::attempts)?,
            rejections: row.narrow(tasks::rejections)?,
            created_at: row.time(tasks::created_at)?,
            updated_at: row.time(tasks::updated_at)?,
            ready: false,
            blocked_by: Vec::new(),
            lease,
        })
    })
}

/// The id of the section of tasks without a section. Every store has a row for it, so that every task joins with a
/// section.
const NO_SECTION: &str = "";

/// The value of `tasks.section_id`.
pub fn section_column(section: Option<&SectionId>) -> &str {
    section.map_or(NO_SECTION, SectionId::as_str)
}

impl NewTask {
    /// A pending task of no section.
    pub fn new(id: TaskId, key: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id,
            key: key.into(),
            title: title.into(),
            description: String::new(),
            status: TaskStatus::Pending,
            section: None,
            source_file: None,
            priority: DEFAULT_PRIORITY,
            position: 0,
            labels: Vec::new(),
        }
    }

    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        Ok(vec![
            (tasks::id, self.id.as_str().into()),
            (tasks::key, (&self.key).into()),
            (tasks::title, (&self.title).into()),
            (tasks::status, self.status.as_str().into()),
            (tasks::description, (&self.description).into()),
            (tasks::section_id, section_column(self.section.as_ref()).into()),
            (tasks::source_file, self.source_file.as_ref().into()),
            (tasks::labels, json(&self.labels)?.into()),
            (tasks::priority, self.priority.into()),
            (tasks::position, self.position.into()),
            (tasks::created_at, now.into()),
            (tasks::updated_at, now.into()),
        ])
    }

    /// The task as it is right after it was stored. `section` is the section that it names.
    pub fn stored(&self, section: Option<SectionRef>, now: Timestamp) -> Task {
        Task {
            id: self.id.clone(),
            key: self.key.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            status: self.status,
            section,
            source_file: self.source_file.clone(),
            priority: self.priority,
            position: self.position,
            depends_on: Vec::new(),
            labels: self.labels.clone(),
            attempts: 0,
            rejections: 0,
            created_at: now,
            updated_at: now,
            ready: false,
            blocked_by: Vec::new(),
            lease: None,
        }
    }
}

impl TaskEdit {
    /// The columns that the edit sets.
    pub fn values(&self, now: Timestamp) -> Result<Values<'_>> {
        let mut set: Values<'_> = vec![(tasks::updated_at, now.into())];
        set.extend(self.title.as_ref().map(|title| (tasks::title, title.into())));
        set.extend(self.description.as_ref().map(|text| (tasks::description, text.into())));
        set.extend(self.section.as_ref().map(|to| (tasks::section_id, section_column(to.as_ref()).into())));
        set.extend(self.source_file.as_ref().map(|file| (tasks::source_file, file.as_ref().into())));
        set.extend(self.priority.map(|priority| (tasks::priority, priority.into())));
        set.extend(self.position.map(|position| (tasks::position, position.into())));
        if let Some(labels) = &self.labels {
            set.push((tasks::labels, json(labels)?.into()));
        }
        set.extend(self.attempts.map(|attempts| (tasks::attempts, attempts.into())));
        set.extend(self.rejections.map(|rejections| (tasks::rejections, rejections.into())));
        Ok(set)
    }

    /// Applies the edit to a stored task, except for attempts and rejections.
    pub fn apply(&self, task: &mut NewTask) {
        fn set<T: Clone>(field: &mut T, to: Option<&T>) {
            if let Some(to) = to {
                field.clone_from(to);
            }
        }
        set(&mut task.title, self.title.as_ref());
        set(&mut task.description, self.description.as_ref());
        set(&mut task.section, self.section.as_ref());
        set(&mut task.source_file, self.source_file.as_ref());
        set(&mut task.priority, self.priority.as_ref());
        set(&mut task.position, self.position.as_ref());
        set(&mut task.labels, self.labels.as_ref());
    }
}
