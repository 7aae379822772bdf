//! Counting that are stored so that no query has to count rows.

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::TaskId;
use crate::job::ItemState;

/// Keeps the counts of a task's open dependencies, a section's open tasks and a job's items in step with the rows that
/// they count. The default is to do nothing, for a store that has no such count or a trigger for it.
pub trait Counting {
    /// If the task is unfinished, adds `by` to its section's count of open tasks.
    fn count_in_section(&mut self, _task: &TaskId, _by: i64) -> Result<()> {
        Ok(())
    }

    /// Adds `by` to the count of open dependencies of the tasks that depend on this one, whose status changes between
    /// finished and unfinished.
    fn count_for_dependents(&mut self, task: &TaskId, by: i64) -> Result<()>;

    /// If `on` is unfinished, adds `by` to the count of open dependencies of `task`.
    fn count_dependency(&mut self, _task: &TaskId, _on: &TaskId, _by: i64) -> Result<()> {
        Ok(())
    }

    /// Adds new pending items to the counts of their job.
    fn count_new_items(&mut self, _job: &str, _count: usize) -> Result<()> {
        Ok(())
    }

    /// Moves an item from its job's count for its present state to the one for `to`. `None` means that it will be
    /// deleted, which does not count as a change of the job.
    fn count_item(&mut self, _job: &str, _number: u64, _to: Option<ItemState>, _at: Timestamp) -> Result<()> {
        Ok(())
    }

    /// Moves some items from their job's count for `from` to the one for pending items.
    fn count_requeued_items(&mut self, _job: &str, _from: ItemState, _count: u64) -> Result<()> {
        Ok(())
    }
}
