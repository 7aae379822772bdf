//! Counting that are stored so that no query has to count rows.

use super::{Dialect, FINISHED};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::TaskId;
use crate::job::ItemState;
use crate::store::Defect;

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

/// The most wrong rows that are reported of each count; the first few suffice.
const MOST: usize = 20;

/// A stored count, and the statements that check and correct it.
#[derive(Debug)]
pub struct StoredCount {
    table: &'static str,
    column: &'static str,
    /// Selects the names of rows whose count is wrong.
    pub wrong: String,
    /// Corrects every wrong count.
    pub recount: String,
}

impl StoredCount {
    /// `counted` is the query for the right value in row `c`, and `name` the column by which messages name a row.
    fn new(dialect: Dialect, table: &'static str, column: &'static str, name: &str, counted: &str) -> Self {
        let is_wrong = format!("c.project = $1 AND c.{column} <> ({counted})");
        let wrong = format!("SELECT c.{name} FROM tenure.{table} AS c WHERE {is_wrong} LIMIT {MOST}");
        let recount = format!("UPDATE tenure.{table} AS c SET {column} = ({counted}) WHERE {is_wrong}");
        Self { table, column, wrong: dialect.statement(&wrong), recount: dialect.statement(&recount) }
    }

    pub fn defect(&self, name: &str) -> Defect {
        let Self { table, column, .. } = self;
        Defect { what: format!("{table}.{column} of {name:?} is not what it should be"), mendable: true }
    }
}

/// All counts that the store of this dialect keeps.
pub fn stored_counts(dialect: Dialect) -> Vec<StoredCount> {
    let of = |table, column, name, counted: &str| StoredCount::new(dialect, table, column, name, counted);
    let open_dependencies = format!(
        "SELECT count(*) FROM tenure.task_deps d JOIN tenure.tasks o ON o.project = $1 AND o.id = d.depends_on
         WHERE d.project = $1 AND d.task_id = c.id AND o.status NOT IN {FINISHED}"
    );
    let items = "SELECT count(*) FROM tenure.job_items i WHERE i.project = $1 AND i.job_id = c.id";
    let mut all =
        vec![of("tasks", "open_deps", "key", &open_dependencies), of("jobs", "total", "name", items)];
    for state in ItemState::ALL {
        all.push(of("jobs", state.as_str(), "name", &format!("{items} AND i.state = '{state}'")));
    }
    if dialect == Dialect::Sqlite {
        let open_tasks =
            format!("SELECT count(*) FROM tasks t WHERE t.section_id = c.id AND t.status NOT IN {FINISHED}");
        all.push(of("sections", "open_tasks", "name", &open_tasks));
    }
    all
}
