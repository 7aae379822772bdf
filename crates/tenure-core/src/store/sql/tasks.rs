//! Reading tasks in SQL.

use super::counts::tasks_by_status;
use super::{Dialect, SqlTx, Statement};
use crate::error::{Result, TaskName};
use crate::id::{SectionId, TaskId};
use crate::store::Viewer;
use crate::store::columns::{Cell, names_of};
use crate::store::rows::{Reader, Row, json};
use crate::store::task_filter::TaskFilter;
use crate::store::tasks::{ReadTasks, Reserved, TaskLookup, name_columns, read_name, section_column};
use crate::task::{Task, TaskStatus};

/// The queries for whole tasks and for the first ready one. Each store has its own, because they decide how fast a claim
/// is, and the planners differ.
pub trait TaskQueries {
    /// See [`ReadTasks::task`].
    fn task_with_readiness(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>>;

    /// See [`ReadTasks::task_row`].
    fn task_without_readiness(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>>;

    /// See [`ReadTasks::page_of_tasks`].
    fn task_page(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>>;

    /// Counts the tasks that match by reading them.
    fn task_count(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64>;

    /// See [`ReadTasks::next_unreserved`].
    fn first_ready(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>>;
}

// SQLite's planner does not change the order of a CROSS JOIN, and it must begin with the few tasks that are reached.
static EDGES_FROM: Statement = Statement::new(|dialect| {
    let start = match dialect {
        Dialect::Sqlite => "$2",
        Dialect::Postgres => "$2 COLLATE \"C\"",
    };
    let sql = format!(
        "WITH RECURSIVE reached (id) AS (
           SELECT {start} UNION SELECT d.depends_on FROM reached r
           JOIN tenure.task_deps d ON d.project = $1 AND d.task_id = r.id)
         SELECT {}, {} FROM reached r CROSS JOIN tenure.task_deps d
         JOIN tenure.tasks a ON a.project = $1 AND a.id = d.task_id
         JOIN tenure.tasks b ON b.project = $1 AND b.id = d.depends_on
         WHERE d.project = $1 AND d.task_id = r.id",
        names_of("a", name_columns()),
        names_of("b", name_columns()),
    );
    dialect.statement(&sql)
});

static DEPENDENTS: Statement = Statement::new(|dialect| {
    let sql = format!(
        "SELECT {} FROM tenure.task_deps d JOIN tenure.tasks t ON t.project = $1 AND t.id = d.task_id
         WHERE d.project = $1 AND d.depends_on = $2 ORDER BY t.key",
        names_of("t", name_columns()),
    );
    dialect.statement(&sql)
});

static LAST_POSITION: Statement = Statement::new(|dialect| {
    dialect.statement("SELECT max(position) FROM tenure.tasks WHERE project = $1 AND section_id = $2")
});

static POSITION_AFTER: Statement = Statement::new(|dialect| {
    dialect.statement(
        "SELECT min(position) FROM tenure.tasks WHERE project = $1 AND section_id = $2 AND position > $3",
    )
});

fn first_name(row: &dyn Row) -> Result<TaskName> {
    read_name(Reader::new(row, 0))
}

impl Dialect {
    /// The condition that the text of a column contains a parameter's. As in every store, case is folded for ASCII
    /// letters only, and on both sides, so that Ä matches Ä.
    pub fn contains(self, column: &str, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("instr(lower({column}), lower({parameter})) > 0"),
            Self::Postgres => format!("strpos(lower({column}), lower({parameter} COLLATE \"C\")) > 0"),
        }
    }
}

fn position<T: SqlTx>(tx: &T, statement: &Statement, values: &[Cell<'_>]) -> Result<Option<i64>> {
    Ok(tx.query(statement.text(T::DIALECT), values, |row| row.int(0))?.pop().flatten())
}

impl<T: SqlTx> ReadTasks for T {
    fn task(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        self.task_with_readiness(id, viewer)
    }

    fn task_row(&self, id: &TaskId, viewer: &Viewer) -> Result<Option<Task>> {
        self.task_without_readiness(id, viewer)
    }

    fn find_tasks(&self, lookup: TaskLookup<'_>, limit: usize) -> Result<Vec<TaskName>> {
        if let Some(known) = self.known_names(lookup)? {
            return Ok(known);
        }
        let (condition, value): (_, Cell<'_>) = match lookup {
            TaskLookup::Id(id) => ("t.id = $2".to_owned(), id.into()),
            TaskLookup::Ids(ids) => (T::DIALECT.listed("t.id", "$2"), json(&ids)?.into()),
            TaskLookup::Key(key) => ("t.key = $2".to_owned(), key.into()),
            TaskLookup::KeyIgnoringCase(key) => ("lower(t.key) = $2".to_owned(), key.into()),
            // 'g' sorts after every hex digit and after the dash.
            TaskLookup::IdPrefix(prefix) => ("t.id >= $2 AND t.id < $2 || 'g'".to_owned(), prefix.into()),
            TaskLookup::Title(title) => ("t.title = $2".to_owned(), title.into()),
            TaskLookup::Titles(titles) => (T::DIALECT.listed("t.title", "$2"), json(&titles)?.into()),
            TaskLookup::TitlePart(part) => (T::DIALECT.contains("t.title", "$2"), part.into()),
        };
        let sql = format!(
            "SELECT {} FROM tenure.tasks t WHERE t.project = $1 AND {condition} LIMIT $3",
            names_of("t", name_columns())
        );
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.query(&T::DIALECT.statement(&sql), &[value, limit.into()], first_name)
    }

    fn page_of_tasks(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<Vec<Task>> {
        self.task_page(filter, viewer)
    }

    fn count_matches(&self, filter: &TaskFilter, viewer: &Viewer) -> Result<u64> {
        if !filter.is_by_status() {
            return self.task_count(filter, viewer);
        }
        let counts = tasks_by_status(self, filter.section.as_ref().map(SectionId::as_str))?;
        let is_wanted = |status| filter.statuses.as_ref().is_none_or(|wanted| wanted.contains(status));
        Ok(counts.iter().filter(|(status, _)| is_wanted(status)).map(|(_, count)| count).sum())
    }

    fn next_unreserved(
        &self,
        section: Option<&SectionId>,
        reserved: &Reserved,
        viewer: &Viewer,
    ) -> Result<Option<TaskId>> {
        self.first_ready(section, reserved, viewer)
    }

    fn count_tasks(&self) -> Result<Vec<(TaskStatus, u64)>> {
        let mut counts = tasks_by_status(self, None)?;
        counts.retain(|(_, count)| *count > 0);
        Ok(counts)
    }

    fn edges_from(&self, task: &TaskId) -> Result<Vec<(TaskName, TaskName)>> {
        self.query(EDGES_FROM.text(T::DIALECT), &[task.as_str().into()], |row| {
            Ok((first_name(row)?, read_name(Reader::new(row, name_columns().len()))?))
        })
    }

    fn dependents(&self, task: &TaskId) -> Result<Vec<TaskName>> {
        self.query(DEPENDENTS.text(T::DIALECT), &[task.as_str().into()], first_name)
    }

    fn last_position(&self, section: Option<&SectionId>) -> Result<Option<i64>> {
        position(self, &LAST_POSITION, &[section_column(section).into()])
    }

    fn position_after(&self, section: Option<&SectionId>, after: i64) -> Result<Option<i64>> {
        position(self, &POSITION_AFTER, &[section_column(section).into(), after.into()])
    }
}
