//! A change that is based on what a person was shown.

use crate::clock::Timestamp;
use crate::error::{Error, Result, TaskName};
use crate::id::{Fence, TaskId};
use crate::store::{View, Viewer};

/// The state of a task when it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub updated_at: Timestamp,
    /// The fence of its open lease.
    pub fence: Option<Fence>,
}

/// Refuses a change of a task that is no longer as it was shown: it was changed, or another lease is open.
pub fn check_seen(view: &dyn View, task: &TaskName, seen: &Seen) -> Result<()> {
    let found = view.task(&TaskId::new(&task.id), &Viewer::default())?;
    let found = found.ok_or_else(|| Error::TaskNotFound { reference: task.key.clone() })?;
    let now = Seen { updated_at: found.updated_at, fence: found.lease.map(|lease| lease.fence) };
    if now == *seen { Ok(()) } else { Err(Error::Changed { task: task.clone() }) }
}
