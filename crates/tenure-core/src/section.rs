//! Sections: groups of tasks that allow one holder at a time (serial) or several (parallel).

use crate::clock::Timestamp;
use crate::id::SectionId;
use crate::lease::Lease;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionMode {
    /// One holder at a time, tasks in order.
    Serial,
    Parallel,
}

impl SectionMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Parallel => "parallel",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Serial, Self::Parallel].into_iter().find(|mode| mode.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub id: SectionId,
    pub name: String,
    pub mode: SectionMode,
    pub priority: i64,
    pub position: i64,
    /// Names of the sections that must be finished first.
    pub depends_on: Vec<String>,
    /// The number of all tasks, and of those neither completed nor skipped.
    pub tasks: u64,
    pub open_tasks: u64,
    /// Names of unfinished sections that this one depends on.
    pub blocked_by: Vec<String>,
    pub lease: Option<Lease>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
