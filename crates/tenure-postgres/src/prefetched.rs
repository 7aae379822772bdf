//! Rows that a transaction has read before they are needed.
//!
//! A round trip to the server costs more than the statement in it. So the first one of a transaction carries, besides
//! the turn and the time, what its decision is likely to read next, and a row that was read for one call is kept for
//! the next. All of that is in [`Prefetched`]. Every write calls [`Prefetched::invalidate`], which drops the rows that
//! the write may have changed.

use tenure_core::Result;
use tenure_core::error::TaskName;
use tenure_core::holder::Holder;
use tenure_core::id::{SectionId, TaskId};
use tenure_core::kernel::name_of;
use tenure_core::lease::{Lease, Resource, ResourceKind, Ticket};
use tenure_core::store::{TaskLookup, TaskNotes, Viewer, ViewerValues};
use tenure_core::task::Task;
use tokio_postgres::Row;

use crate::readiness::MayExist;
use crate::task_query::read_task;

pub(crate) struct Prefetched {
    pub(crate) may_exist: MayExist,
    /// The processes recorded in open leases and in tickets.
    pub(crate) processes: Option<Vec<String>>,
    /// The next task, read together with the turn.
    pub(crate) next: Option<NextTask>,
    /// The task that a claim names, read together with the turn.
    pub(crate) named: Option<NamedTask>,
    /// The task that was last offered as the next one.
    pub(crate) offered: Option<OfferedTask>,
    /// All tickets for tasks.
    pub(crate) tickets: Option<Vec<Ticket>>,
    /// A fence drawn from the sequence for a grant. If it is not used, the sequence has a gap.
    pub(crate) fence: Option<i64>,
    /// The lease that this transaction has granted.
    pub(crate) granted: Option<Lease>,
    /// The id of a task without an attempt in state `ending`.
    pub(crate) without_ending_attempts: Option<String>,
    /// The notes on a task for a reader.
    pub(crate) notes: Option<TaskNotesFor>,
    /// An agent's name, and when it was last seen: `None` if it is not registered, 0 if it has left.
    pub(crate) agent: Option<(String, Option<i64>)>,
}

impl Prefetched {
    pub(crate) fn new(may_exist: MayExist, processes: Option<Vec<String>>) -> Self {
        Self {
            may_exist,
            processes,
            next: None,
            named: None,
            offered: None,
            tickets: None,
            fence: None,
            granted: None,
            without_ending_attempts: None,
            notes: None,
            agent: None,
        }
    }

    /// Drops the rows that a write to `table` may have changed.
    pub(crate) fn invalidate(&mut self, table: &str) {
        // Readiness depends on most tables.
        self.next = None;
        self.named = None;
        self.offered = None;
        match table {
            "leases" => {
                self.granted = None;
                self.processes = None;
                self.may_exist.lapsed_leases = true;
                self.may_exist.section_leases = true;
            }
            "tickets" => {
                self.tickets = None;
                self.processes = None;
                self.may_exist.tickets = true;
            }
            "section_deps" => self.may_exist.section_deps = true,
            "task_deps" => self.may_exist.task_deps = true,
            "messages" | "events" => self.notes = None,
            "attempts" => self.without_ending_attempts = None,
            "agents" => self.agent = None,
            _ => {}
        }
    }

    /// The open lease of `resource`, if this transaction granted it.
    pub(crate) fn granted(&self, resource: &Resource) -> Option<Lease> {
        self.granted.clone().filter(|lease| lease.resource == *resource)
    }

    /// All tickets for tasks, if they are known.
    pub(crate) fn work_tickets(&self) -> Option<Vec<Ticket>> {
        if self.may_exist.tickets { self.tickets.clone() } else { Some(Vec::new()) }
    }

    pub(crate) fn has_no_ending_attempts(&self, resource: &Resource) -> bool {
        resource.kind == ResourceKind::Task && self.without_ending_attempts.as_ref() == Some(&resource.id)
    }
}

/// The next task for `holder` in `section`, valid if no ticket and no lease of a section exists.
pub(crate) struct NextTask {
    /// The columns of a task are null if there is none.
    pub(crate) row: Row,
    holder: String,
    section: Option<String>,
}

impl NextTask {
    pub(crate) fn new(row: Row, holder: &Holder, section: Option<&SectionId>) -> Self {
        let section = section.map(|section| section.as_str().to_owned());
        Self { row, holder: holder.id.clone(), section }
    }

    /// Whether this is the next task for the viewer in `section`.
    pub(crate) fn answers(&self, section: Option<&SectionId>, viewer: &Viewer) -> bool {
        viewer.me.as_ref().is_some_and(|me| me.id == self.holder)
            && section.map(SectionId::as_str) == self.section.as_deref()
    }
}

/// The task that `holder` wants to claim, and all tickets for tasks.
pub(crate) struct NamedTask {
    pub(crate) holder: String,
    /// The id or the key by which it was read.
    pub(crate) reference: String,
    /// Empty if no task has that id or key.
    pub(crate) rows: Vec<Row>,
    pub(crate) tickets: Vec<Row>,
}

impl NamedTask {
    pub(crate) fn is_of(&self, holder: &str, task: &TaskId) -> Result<bool> {
        let found = self.rows.first().map(read_task).transpose()?;
        Ok(self.holder == holder && found.is_some_and(|found| found.id == *task))
    }

    /// The answer to `lookup`, if it follows from these rows.
    pub(crate) fn names(&self, lookup: TaskLookup<'_>) -> Result<Option<Vec<TaskName>>> {
        match lookup {
            TaskLookup::Id(id) if id == self.reference.to_ascii_lowercase() => {}
            TaskLookup::Key(key) if key == self.reference => {}
            _ => return Ok(None),
        }
        let Some(row) = self.rows.first() else { return Ok(Some(Vec::new())) };
        let name = name_of(&read_task(row)?);
        Ok(match lookup {
            // The query prefers a task with this id to one with this key.
            TaskLookup::Id(id) => Some(if name.id == id { vec![name] } else { Vec::new() }),
            TaskLookup::Key(key) if name.key == key => Some(vec![name]),
            _ => None,
        })
    }
}

/// The notes on a task for a reader.
pub(crate) struct TaskNotesFor {
    pub(crate) task: String,
    pub(crate) reader: String,
    pub(crate) notes: TaskNotes,
}

/// A task that was offered as the next one, as seen by the viewer of `bound`.
pub(crate) struct OfferedTask {
    pub(crate) task: Task,
    pub(crate) bound: ViewerValues,
}

/// The table that a statement writes to: the first one that it names.
pub(crate) fn table_of(sql: &str) -> &str {
    let name = sql.split_once("tenure.").map_or("", |(_, rest)| rest);
    let end = name.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(name.len());
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_write_is_the_first_that_it_names() {
        assert_eq!(
            table_of("INSERT INTO tenure.task_deps (project) SELECT id FROM tenure.tasks"),
            "task_deps"
        );
        assert_eq!(table_of("UPDATE tenure.tickets SET refreshed_at = $2"), "tickets");
        assert_eq!(table_of("DELETE FROM tenure.leases\nWHERE fence = $2"), "leases");
        assert_eq!(table_of("SELECT 1"), "");
    }

    #[test]
    fn a_write_leaves_nothing_known_about_the_rows_that_it_may_have_made() {
        let mut prefetched = Prefetched::new(MayExist::NOTHING, Some(Vec::new()));
        prefetched.tickets = Some(Vec::new());
        prefetched.invalidate("tasks");
        assert_eq!(prefetched.work_tickets(), Some(Vec::new()), "no other write makes a ticket");
        assert_eq!(prefetched.may_exist, MayExist::NOTHING);
        prefetched.invalidate("tickets");
        assert_eq!(prefetched.work_tickets(), None);
        assert!(prefetched.processes.is_none());
        prefetched.invalidate("leases");
        assert_eq!(
            prefetched.may_exist,
            MayExist { section_deps: false, task_deps: false, ..MayExist::UNKNOWN }
        );
        prefetched.invalidate("section_deps");
        prefetched.invalidate("task_deps");
        assert_eq!(prefetched.may_exist, MayExist::UNKNOWN);
    }
}
