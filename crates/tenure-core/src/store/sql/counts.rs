//! Counts that are stored so that no query has to count rows.

use super::{Dialect, FINISHED, SqlTx, Statement};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::TaskId;
use crate::job::ItemState;
use crate::store::Defect;
use crate::store::columns::{Cell, Column, sections, tasks};
use crate::store::rows::{Row, Values};
use crate::task::TaskStatus;

/// Keeps the counts of a task's open dependencies and of a job's items in step with the rows that they count. The default
/// is to do nothing, for a store that has no such count or a trigger for it.
pub trait Counting {
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

/// The column of `sections` that counts the tasks of a status, besides `open_tasks`, which counts all unfinished ones. Pending
/// tasks and those in progress are not counted separately, so that a claim changes no count.
fn column_of(status: TaskStatus) -> Option<&'static str> {
    match status {
        TaskStatus::Pending | TaskStatus::InProgress => None,
        TaskStatus::Review => Some("in_review"),
        TaskStatus::Completed => Some("completed"),
        TaskStatus::Failed => Some("failed"),
        TaskStatus::Skipped => Some("skipped"),
    }
}

/// The columns that count tasks, with the statuses that each counts.
fn counted() -> impl Iterator<Item = (Column, Vec<TaskStatus>)> {
    let open = TaskStatus::ALL.into_iter().filter(|status| !status.is_finished()).collect();
    let of = |column: Column| {
        let name = Some(column.name);
        (column, TaskStatus::ALL.into_iter().filter(|status| column_of(*status) == name).collect())
    };
    let single = [sections::in_review, sections::completed, sections::failed, sections::skipped];
    std::iter::once((sections::open_tasks, open)).chain(single.into_iter().map(of))
}

/// Adds parameters to the counts of a section.
fn add_to(dialect: Dialect, section: &str) -> String {
    let set: Vec<String> = (3..)
        .zip(counted())
        .map(|(number, (column, _))| format!("{name} = c.{name} + ${number}", name = column.name))
        .collect();
    let set = set.join(", ");
    dialect.statement(&format!(
        "UPDATE tenure.sections AS c SET {set} WHERE c.project = $1 AND c.id = {section}"
    ))
}

static ADD_TO_SECTION: Statement = Statement::new(|dialect| add_to(dialect, "$2"));
// The section of a task does not change with its status, so this may be executed together with a change of the status.
static ADD_TO_SECTION_OF: Statement = Statement::new(|dialect| {
    add_to(dialect, "(SELECT t.section_id FROM tenure.tasks t WHERE t.project = $1 AND t.id = $2)")
});

/// How much each count changes.
fn changes(from: Option<TaskStatus>, to: Option<TaskStatus>) -> Vec<(Column, i64)> {
    let counts = |status: Option<TaskStatus>, of: &[TaskStatus]| {
        i64::from(status.is_some_and(|status| of.contains(&status)))
    };
    counted().map(|(column, of)| (column, counts(to, &of) - counts(from, &of))).collect()
}

fn add<T: SqlTx>(
    tx: &mut T,
    statement: &Statement,
    row: (Column, Cell<'_>),
    changes: Vec<(Column, i64)>,
) -> Result<()> {
    let mut values: Values<'_> = vec![row];
    values.extend(changes.into_iter().map(|(column, by)| (column, by.into())));
    tx.defer(&sections::TABLE, statement.text(T::DIALECT), &values)
}

/// Counts a new task of a section.
pub(super) fn count_new_task<T: SqlTx>(tx: &mut T, section: &str, status: TaskStatus) -> Result<()> {
    add(tx, &ADD_TO_SECTION, (sections::id, section.into()), changes(None, Some(status)))
}

/// Counts a change of the task's status.
pub(super) fn count_status<T: SqlTx>(
    tx: &mut T,
    id: &TaskId,
    from: TaskStatus,
    to: TaskStatus,
) -> Result<()> {
    let changes = changes(Some(from), Some(to));
    if changes.iter().all(|(_, by)| *by == 0) {
        return Ok(());
    }
    add(tx, &ADD_TO_SECTION_OF, (tasks::id, id.as_str().into()), changes)
}

static COUNT_TASK: Statement = Statement::new(|dialect| {
    let set: Vec<String> = counted()
        .map(|(column, of)| {
            let (name, of) =
                (column.name, of.iter().map(|s| format!("'{s}'")).collect::<Vec<_>>().join(", "));
            format!("{name} = c.{name} + CASE WHEN t.status IN ({of}) THEN CAST($3 AS bigint) ELSE 0 END")
        })
        .collect();
    dialect.statement(&format!(
        "UPDATE tenure.sections AS c SET {} FROM tenure.tasks t
         WHERE c.project = $1 AND c.id = t.section_id AND t.project = $1 AND t.id = $2",
        set.join(", ")
    ))
});

/// Adds `by` to its section's counts of tasks like this one.
pub(super) fn count_task<T: SqlTx>(tx: &mut T, id: &TaskId, by: i64) -> Result<()> {
    let values = [(tasks::id, id.as_str().into()), (sections::open_tasks, by.into())];
    // Not deferred: it reads the row of the task and changes that of the section, so it must not be combined with a write to
    // either table.
    tx.execute(&sections::TABLE, COUNT_TASK.text(T::DIALECT), &values).map(drop)
}

fn counts_of(dialect: Dialect, section: &str, task: &str) -> String {
    let sums: Vec<String> =
        counted().map(|(column, _)| format!("CAST(coalesce(sum(c.{}), 0) AS bigint)", column.name)).collect();
    dialect.statement(&format!(
        "SELECT {}, (SELECT count(*) FROM tenure.tasks t
                     WHERE t.project = $1 AND t.status = 'in_progress' {task})
         FROM tenure.sections c WHERE c.project = $1 AND true {section}",
        sums.join(", ")
    ))
}

static COUNTS: Statement = Statement::new(|dialect| counts_of(dialect, "", ""));
static COUNTS_IN_SECTION: Statement =
    Statement::new(|dialect| counts_of(dialect, "AND c.id = $2", "AND t.section_id = $2"));

/// How many tasks have each status, in a section or in all. Only the tasks in progress are counted; the rest is the sum of
/// stored counts.
pub(super) fn tasks_by_status<T: SqlTx>(tx: &T, section: Option<&str>) -> Result<Vec<(TaskStatus, u64)>> {
    let counted = |row: &dyn Row| {
        let (open, in_review, completed) = (row.count(0)?, row.count(1)?, row.count(2)?);
        let (failed, skipped, in_progress) = (row.count(3)?, row.count(4)?, row.count(5)?);
        Ok(vec![
            (TaskStatus::Pending, open.saturating_sub(in_review + failed + in_progress)),
            (TaskStatus::InProgress, in_progress),
            (TaskStatus::Review, in_review),
            (TaskStatus::Completed, completed),
            (TaskStatus::Failed, failed),
            (TaskStatus::Skipped, skipped),
        ])
    };
    let mut found = match section {
        Some(section) => tx.query(COUNTS_IN_SECTION.text(T::DIALECT), &[section.into()], counted)?,
        None => tx.query(COUNTS.text(T::DIALECT), &[], counted)?,
    };
    Ok(found.pop().unwrap_or_default())
}

/// The most wrong rows that are reported of each count; the first few suffice.
const MOST: usize = 20;

/// A stored count, and the statements that check and correct it.
#[derive(Debug)]
pub struct StoredCount {
    pub table: &'static str,
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
    let tasks =
        "SELECT count(*) FROM tenure.tasks t WHERE t.project = $1 AND t.section_id = c.id AND t.status";
    all.push(of("sections", "open_tasks", "name", &format!("{tasks} NOT IN {FINISHED}")));
    for status in TaskStatus::ALL {
        if let Some(column) = column_of(status) {
            all.push(of("sections", column, "name", &format!("{tasks} = '{status}'")));
        }
    }
    all
}
