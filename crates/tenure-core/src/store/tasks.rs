//! Rows of tasks and of their dependencies.

use crate::error::{Result, TaskName};
use crate::event::NewEvent;
use crate::holder::Holder;
use crate::id::{SectionId, TaskId};
use crate::store::Viewer;
use crate::task::{Task, TaskStatus};

/// How a task may be looked up.
#[derive(Debug, Clone, Copy)]
pub enum TaskLookup<'a> {
    Id(&'a str),
    Key(&'a str),
    /// Hex digits and dashes, lower case.
    IdPrefix(&'a str),
    Title(&'a str),
    /// Anywhere in the title, without regard to case.
    TitlePart(&'a str),
}

#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// None: all statuses.
    pub statuses: Option<Vec<TaskStatus>>,
    pub section: Option<SectionId>,
    /// In title, description or key, without regard to case.
    pub search: Option<String>,
    pub label: Option<String>,
    pub ready: bool,
    /// Only tasks whose open lease this holder has.
    pub held_by: Option<Holder>,
    pub limit: u64,
    pub offset: u64,
}

#[derive(Debug, Clone)]
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

/// What of a task may be edited; `None` leaves it as it is.
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

/// Ready work that earlier waiters are about to take (Q1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reserved {
    pub tasks: Vec<TaskId>,
    /// Serial sections: with the first of its tasks, all of such a section goes to one holder.
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
    fn list_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<(Vec<Task>, u64)>;
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
    /// The tasks that wait for this one.
    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>>;
    /// Positions in a section: the greatest, and the smallest beyond `after`.
    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>>;
    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>>;
}

pub trait WriteTasks {
    /// The number of the next task without a key of its own: `T1`, `T2` …
    fn take_task_number(&mut self) -> Result<i64>;
    fn insert_task(&mut self, task: &NewTask, event: NewEvent<'_>) -> Result<()>;
    fn edit_task(&mut self, id: &TaskId, edit: &TaskEdit, event: Option<NewEvent<'_>>) -> Result<()>;
    /// A status never changes without its event (T1).
    fn set_status(&mut self, id: &TaskId, to: TaskStatus, event: NewEvent<'_>) -> Result<()>;
    fn delete_task(&mut self, id: &TaskId, event: NewEvent<'_>) -> Result<()>;
    fn add_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool>;
    fn remove_dependency(&mut self, task: &TaskId, on: &TaskId) -> Result<bool>;
    /// Gives every task of a section a fresh position with room between, in the same order.
    fn spread_positions(&mut self, section: Option<&SectionId>) -> Result<()>;
}
