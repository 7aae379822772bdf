//! The tasks of a project in groups: by section, or by status.

use super::model::{Page, TaskLine};
use super::read::Query;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::holder::{Holder, Judge};
use crate::id::SectionId;
use crate::lease::LeaseState;
use crate::section::{Section, SectionMode};
use crate::store::{TaskFilter, View, Viewer};
use crate::task::{DEFAULT_PRIORITY, Task, TaskStatus};

/// If at most this many tasks match, all of them are read by one query; otherwise each group needs its own.
const ONE_QUERY: u64 = 500;
/// At most this many groups are read by separate queries. The groups after them are shown closed.
const MOST_QUERIES: usize = 50;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GroupBy {
    #[default]
    Section,
    Status,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupId {
    /// The tasks without a section.
    NoSection,
    Section(SectionId),
    Status(TaskStatus),
}

/// A section or a status, with a page of its tasks in working order.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub id: GroupId,
    /// The section's name, or the status in words.
    pub name: String,
    /// One holder works in it at a time.
    pub serial: bool,
    /// The number of all its tasks, and of those that are neither completed nor skipped.
    pub total: u64,
    pub open: u64,
    /// Unfinished sections that this one depends on.
    pub blocked_by: Vec<String>,
    /// The holder of the serial section.
    pub holder: Option<Holder>,
    /// The matching tasks; `None` if the group is closed.
    pub tasks: Option<Page<TaskLine>>,
}

/// A group as it is read.
#[derive(Debug, Clone)]
pub(super) struct GroupRows {
    group: Group,
    section: Option<Section>,
    tasks: Option<Page<Task>>,
}

impl GroupRows {
    pub(super) fn group(self, now: Timestamp, judge: &dyn Judge) -> Group {
        let lease = self.section.and_then(|section| section.lease);
        let holder = lease.filter(|lease| lease.state(now, judge) == LeaseState::Live).map(|l| l.holder);
        let tasks = self.tasks.map(|page| page.map(|task| TaskLine::of(&task, now, judge)));
        Group { holder, tasks, ..self.group }
    }

    fn new(id: GroupId, name: impl Into<String>, total: u64, open: u64) -> Self {
        let group = Group {
            id,
            name: name.into(),
            serial: false,
            total,
            open,
            blocked_by: Vec::new(),
            holder: None,
            tasks: None,
        };
        Self { group, section: None, tasks: None }
    }

    fn of_section(section: Section) -> Self {
        let id = GroupId::Section(section.id.clone());
        let mut rows = Self::new(id, section.name.clone(), section.tasks, section.open_tasks);
        rows.group.serial = section.mode == SectionMode::Serial;
        rows.group.blocked_by.clone_from(&section.blocked_by);
        rows.section = Some(section);
        rows
    }
}

pub(super) fn read_groups(
    view: &dyn View,
    viewer: &Viewer,
    query: &Query,
    counts: &[(TaskStatus, u64)],
) -> Result<Vec<GroupRows>> {
    let mut groups = match query.group_by {
        GroupBy::Section => sections(view.sections()?, counts),
        GroupBy::Status => statuses(counts),
    };
    let is_open = |id: &GroupId| match id {
        GroupId::Status(status) if status.is_finished() && !query.finished => false,
        id => !query.closed.contains(id),
    };
    let filter = |id: Option<&GroupId>| {
        let open = TaskStatus::ALL.into_iter().filter(|status| query.finished || !status.is_finished());
        let section = match id {
            Some(GroupId::Section(section)) => Some(section.clone()),
            Some(GroupId::NoSection) => Some(SectionId::new("")),
            _ => None,
        };
        let statuses = match id {
            Some(GroupId::Status(status)) => vec![*status],
            _ => open.collect(),
        };
        TaskFilter {
            statuses: Some(statuses),
            section,
            search: query.search.clone(),
            ..TaskFilter::default()
        }
    };
    if query.offsets.is_empty() {
        let all = TaskFilter { limit: ONE_QUERY + 1, ..filter(None) };
        let tasks = view.page_of_tasks(&all, viewer)?;
        if u64::try_from(tasks.len()).unwrap_or(u64::MAX) <= ONE_QUERY {
            for rows in groups.iter_mut().filter(|rows| is_open(&rows.group.id)) {
                let of_group = tasks.iter().filter(|task| rows.group.id.contains(task));
                let mut page = Page::whole(of_group.cloned().collect());
                page.rows.truncate(usize::try_from(query.rows).unwrap_or(usize::MAX));
                rows.tasks = Some(page);
            }
            return Ok(found(groups, query));
        }
    }
    for rows in groups.iter_mut().filter(|rows| is_open(&rows.group.id)).take(MOST_QUERIES) {
        let offset = query.offsets.get(&rows.group.id).copied().unwrap_or(0);
        // One more than is shown, which tells whether there are more.
        let limit = query.rows.saturating_add(1);
        let page = TaskFilter { limit, offset, ..filter(Some(&rows.group.id)) };
        let mut tasks = view.page_of_tasks(&page, viewer)?;
        let read = offset.saturating_add(u64::try_from(tasks.len()).unwrap_or(u64::MAX));
        let total = match (&query.search, query.finished) {
            // Counting the matches would read every task.
            (Some(_), _) => read,
            (None, true) => rows.group.total,
            (None, false) => rows.group.open,
        };
        let rows_shown = usize::try_from(query.rows).unwrap_or(usize::MAX);
        let is_uncounted = query.search.is_some() && tasks.len() > rows_shown;
        tasks.truncate(rows_shown);
        rows.tasks = Some(Page { rows: tasks, offset, total, is_uncounted });
    }
    Ok(found(groups, query))
}

/// A search leaves out the sections in which nothing was found.
fn found(mut groups: Vec<GroupRows>, query: &Query) -> Vec<GroupRows> {
    let is_found = |page: &Page<Task>| !page.rows.is_empty() || page.offset > 0;
    if query.search.is_some() && query.group_by == GroupBy::Section {
        groups.retain(|rows| rows.tasks.as_ref().is_none_or(is_found));
    }
    groups
}

impl GroupId {
    fn contains(&self, task: &Task) -> bool {
        match self {
            Self::NoSection => task.section.is_none(),
            Self::Section(id) => task.section.as_ref().is_some_and(|section| section.id == *id),
            Self::Status(status) => task.status == *status,
        }
    }
}

/// The sections in working order, and the tasks without a section in their place among them.
fn sections(sections: Vec<Section>, counts: &[(TaskStatus, u64)]) -> Vec<GroupRows> {
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let open: u64 = counts.iter().filter(|(status, _)| !status.is_finished()).map(|(_, count)| count).sum();
    let inside: u64 = sections.iter().map(|section| section.tasks).sum();
    let open_inside: u64 = sections.iter().map(|section| section.open_tasks).sum();
    let place = sections
        .iter()
        .position(|section| (section.priority, section.position) > (DEFAULT_PRIORITY, 0))
        .unwrap_or(sections.len());
    let mut groups: Vec<GroupRows> = sections.into_iter().map(GroupRows::of_section).collect();
    if all > inside {
        let outside =
            GroupRows::new(GroupId::NoSection, "No section", all - inside, open.saturating_sub(open_inside));
        groups.insert(place, outside);
    }
    groups
}

fn statuses(counts: &[(TaskStatus, u64)]) -> Vec<GroupRows> {
    let count = |status| counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
    let group = |status: TaskStatus| {
        let total = count(status);
        let open = if status.is_finished() { 0 } else { total };
        GroupRows::new(GroupId::Status(status), status.label(), total, open)
    };
    TaskStatus::ALL.into_iter().map(group).collect()
}
