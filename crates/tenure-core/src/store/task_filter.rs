//! Which tasks a listing contains, and in which order.

use crate::holder::Holder;
use crate::id::SectionId;
use crate::task::TaskStatus;

#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// None: all statuses.
    pub statuses: Option<Vec<TaskStatus>>,
    /// In addition to the tasks with one of the statuses, those in one of these states.
    pub states: Vec<ComputedState>,
    /// Only tasks of this section; with an empty id, only tasks without a section.
    pub section: Option<SectionId>,
    /// Part of the title, the description or the key, ignoring case.
    pub search: Option<String>,
    pub label: Option<String>,
    pub ready: bool,
    /// Only tasks with an open lease of this holder.
    pub held_by: Option<Holder>,
    pub order: TaskOrder,
    pub limit: u64,
    pub offset: u64,
}

impl TaskFilter {
    /// Whether only the status and the section decide which tasks match, so that stored counts tell how many there are.
    pub fn is_by_status(&self) -> bool {
        let Self {
            statuses: _,
            states,
            section: _,
            search,
            label,
            ready,
            held_by,
            order: _,
            limit: _,
            offset: _,
        } = self;
        states.is_empty() && search.is_none() && label.is_none() && !ready && held_by.is_none()
    }

    /// Whether every match has one of the statuses that few tasks have: all but pending and completed. Sorting these is faster than
    /// looking for them in order.
    pub fn are_few(&self) -> bool {
        let is_rare = |status: &TaskStatus| !matches!(status, TaskStatus::Pending | TaskStatus::Completed);
        let statuses = self.statuses.as_ref().filter(|statuses| !statuses.is_empty());
        self.states.is_empty() && statuses.is_some_and(|statuses| statuses.iter().all(is_rare))
    }
}

/// A state of a task that is computed from other rows, not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputedState {
    /// Pending, with an unfinished dependency or in a section that waits for another one.
    Blocked,
    /// The viewer can claim it now.
    Ready,
    /// In progress, under a lease that has expired or whose holder is dead.
    Lapsed,
}

/// The order of a listing. Tasks that compare equal are in working order, so the order is total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskOrder {
    pub by: SortBy,
    /// Reverses the whole order.
    pub descending: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The order in which tasks are worked on.
    #[default]
    Working,
    /// The text of the key before its last number, then the number: T2 is before T10.
    Key,
    /// Without regard to the case of ASCII letters.
    Title,
    /// In the order of [`TaskStatus::ALL`].
    Status,
    Priority,
    Created,
    Updated,
}

impl SortBy {
    pub const ALL: [Self; 7] =
        [Self::Working, Self::Key, Self::Title, Self::Status, Self::Priority, Self::Created, Self::Updated];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "order",
            Self::Key => "key",
            Self::Title => "title",
            Self::Status => "status",
            Self::Priority => "priority",
            Self::Created => "created",
            Self::Updated => "updated",
        }
    }
}

impl TaskOrder {
    /// The terms of `ORDER BY` for tasks `t` in sections `s`. Text is compared by bytes and folded for ASCII letters only
    /// in both databases.
    pub fn sql(self) -> String {
        let by_status;
        let first: &[&str] = match self.by {
            SortBy::Working => &[],
            SortBy::Key => &["rtrim(t.key, '0123456789')", "length(t.key)", "t.key"],
            SortBy::Title => &["lower(t.title)", "t.title"],
            SortBy::Status => {
                let ranks: Vec<String> = (0..)
                    .zip(TaskStatus::ALL)
                    .map(|(rank, status)| format!("WHEN '{status}' THEN {rank}"))
                    .collect();
                by_status = format!("CASE t.status {} END", ranks.join(" "));
                &[by_status.as_str()]
            }
            SortBy::Priority => &["t.priority"],
            SortBy::Created => &["t.created_at"],
            SortBy::Updated => &["t.updated_at"],
        };
        let working = ["s.priority", "s.position", "s.id", "t.priority", "t.position", "t.id"];
        let terms: Vec<&str> = first.iter().copied().chain(working).collect();
        terms.join(if self.descending { " DESC, " } else { ", " })
            + if self.descending { " DESC" } else { "" }
    }
}
