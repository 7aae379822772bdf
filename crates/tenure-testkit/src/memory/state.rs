//! The rows, and everything that is computed from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use tenure_core::Timestamp;
use tenure_core::event::Event;
use tenure_core::holder::{Holder, Incarnation};
use tenure_core::id::{Fence, SectionId, TaskId};
use tenure_core::job::{Item, Job};
use tenure_core::lease::{Attempt, Lease, Resource, Ticket};
use tenure_core::parking::Parking;
use tenure_core::runner::Runner;
use tenure_core::section::SectionMode;
use tenure_core::session::{DoneTask, Session};
use tenure_core::store::{Agent, History, NewTask, Viewer};
use tenure_core::task::{DEFAULT_PRIORITY, TaskStatus};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub tasks: BTreeMap<TaskId, TaskRow>,
    pub sections: BTreeMap<SectionId, SectionRow>,
    pub task_deps: BTreeSet<(TaskId, TaskId)>,
    pub section_deps: BTreeSet<(SectionId, SectionId)>,
    pub leases: BTreeMap<Fence, Lease>,
    pub tickets: BTreeMap<i64, Ticket>,
    pub attempts: Vec<Attempt>,
    pub agents: BTreeMap<String, Agent>,
    pub messages: BTreeMap<i64, MessageRow>,
    pub runners: BTreeMap<String, Runner>,
    pub parkings: BTreeMap<String, Parking>,
    pub jobs: BTreeMap<String, Job>,
    pub items: BTreeMap<(String, u64), Item>,
    pub sessions: BTreeMap<String, Session>,
    pub done_tasks: Vec<(String, DoneTask)>,
    pub events: Vec<Event>,
    pub pruned_through: BTreeMap<History, i64>,
    pub last_fence: i64,
    pub last_ticket: i64,
    pub last_message: i64,
    pub last_event: i64,
    pub last_task_number: i64,
}

/// A task as inserted and edited, with the columns that the store adds. It derefs to the task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskRow {
    pub task: NewTask,
    pub attempts: u32,
    pub rejections: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Deref for TaskRow {
    type Target = NewTask;

    fn deref(&self) -> &NewTask {
        &self.task
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRow {
    pub name: String,
    pub mode: SectionMode,
    pub priority: i64,
    pub position: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageRow {
    pub task: Option<TaskId>,
    pub from: String,
    pub to: Option<String>,
    pub text: String,
    pub sent_at: Timestamp,
    pub acknowledged: Option<(Timestamp, String)>,
}

/// What the working order compares.
pub(super) type OrderKey<'a> = (i64, i64, &'a str, i64, i64, &'a TaskId);

impl State {
    pub fn open_lease(&self, resource: &Resource) -> Option<&Lease> {
        self.leases.values().find(|lease| lease.resource == *resource && lease.is_open())
    }

    pub(super) fn unfinished_dependencies<'a>(&'a self, id: &'a TaskId) -> impl Iterator<Item = &'a TaskRow> {
        self.task_deps
            .iter()
            .filter(move |(task, _)| task == id)
            .filter_map(|(_, on)| self.tasks.get(on))
            .filter(|task| !task.status.is_finished())
    }

    pub(super) fn open_tasks(&self, section: &SectionId) -> u64 {
        let open = |task: &&TaskRow| task.section.as_ref() == Some(section) && !task.status.is_finished();
        self.tasks.values().filter(open).count() as u64
    }

    pub(super) fn unfinished_sections_before<'a>(
        &'a self,
        id: &'a SectionId,
    ) -> impl Iterator<Item = &'a SectionRow> {
        self.section_deps
            .iter()
            .filter(move |(section, on)| section == id && self.open_tasks(on) > 0)
            .filter_map(|(_, on)| self.sections.get(on))
    }

    /// Section priority, section position, task priority, task position; ids make it total.
    pub(super) fn order_key<'a>(&'a self, id: &'a TaskId, task: &'a TaskRow) -> OrderKey<'a> {
        let (priority, position, section) = match &task.section {
            Some(section) => {
                let row = self.sections.get(section);
                (row.map_or(0, |s| s.priority), row.map_or(0, |s| s.position), section.as_str())
            }
            None => (DEFAULT_PRIORITY, 0, ""),
        };
        (priority, position, section, task.priority, task.position, id)
    }

    pub(super) fn in_order(&self) -> Vec<(&TaskId, &TaskRow)> {
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(id, task)| self.order_key(id, task));
        tasks
    }

    /// Whether a task is ready, following the definition condition by condition.
    pub(super) fn is_ready(&self, id: &TaskId, task: &TaskRow, now: Timestamp, viewer: &Viewer) -> bool {
        let resource = Resource::task(id);
        let lease = self.open_lease(&resource);
        let pending = match task.status {
            TaskStatus::Pending => true,
            // L3: left in progress by a lapsed lease, and returned to `pending` when that is closed.
            TaskStatus::InProgress => lease.is_some_and(|l| l.claimed_from == Some(TaskStatus::Pending)),
            _ => false,
        };
        let unblocked = self.unfinished_dependencies(id).next().is_none();
        let unleased = lease.is_none_or(|lease| !blocks(lease, now, viewer));
        pending
            && unblocked
            && unleased
            && task.section.as_ref().is_none_or(|section| self.section_is_open(section, now, viewer))
    }

    fn section_is_open(&self, id: &SectionId, now: Timestamp, viewer: &Viewer) -> bool {
        if self.unfinished_sections_before(id).next().is_some() {
            return false;
        }
        if self.sections.get(id).is_some_and(|section| section.mode == SectionMode::Parallel) {
            return true;
        }
        let resource = Resource::section(id);
        match self.open_lease(&resource).filter(|lease| blocks(lease, now, viewer)) {
            Some(lease) if is_me(&lease.holder, viewer) => true,
            Some(lease) => !self.is_at_work(id, lease, now, viewer),
            None => true,
        }
    }

    /// Whether the section's lease blocks: its holder has a live lease on a task in it, or none at all, between two
    /// tasks.
    fn is_at_work(&self, id: &SectionId, section: &Lease, now: Timestamp, viewer: &Viewer) -> bool {
        let inside = |lease: &&Lease| {
            let task = lease.resource.task_id().and_then(|id| self.tasks.get(&id));
            let one_life =
                lease.process.is_none() || section.process.is_none() || lease.process == section.process;
            lease.is_open()
                && lease.holder == section.holder
                && one_life
                && task.is_some_and(|task| task.section.as_ref() == Some(id))
        };
        let mut tasks = self.leases.values().filter(inside).peekable();
        tasks.peek().is_none() || tasks.any(|lease| blocks(lease, now, viewer))
    }

    pub(super) fn recorded_processes(&self) -> Vec<Incarnation> {
        let leases = self.leases.values().filter(|l| l.is_open()).filter_map(|l| l.process.as_ref());
        let tickets = self.tickets.values().map(|t| &t.process);
        let mut found: Vec<Incarnation> = Vec::new();
        for process in leases.chain(tickets) {
            if !found.contains(process) {
                found.push(process.clone());
            }
        }
        found
    }
}

pub(super) fn blocks(lease: &Lease, now: Timestamp, viewer: &Viewer) -> bool {
    lease.expires_at > now && lease.process.as_ref().is_none_or(|process| !viewer.is_dead(process))
}

fn is_me(holder: &Holder, viewer: &Viewer) -> bool {
    viewer.me.as_ref() == Some(holder)
}
