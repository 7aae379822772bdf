//! SQL statements over [`Table`]s, and the row traits that can be implemented with them alone.
//!
//! SQLite has one database per project. PostgreSQL keeps all projects in the schema `tenure`: there every table has a column
//! `project`, and `$1` is the project in every statement.

use std::cell::OnceCell;
use std::sync::OnceLock;

use super::columns::{Cell, Column, Table, events, names};
use super::rows::{Record, Row, Values};
use super::{NewLease, Tx, View};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::NewEvent;
use crate::holder::Incarnation;
use crate::id::TaskId;
use crate::lease::Lease;
use crate::task::TaskStatus;

mod counts;
mod feed;
mod grant;
mod jobs;
mod known;
mod leases;
mod notes;
mod runners;
mod sections;
mod sessions;
mod task_changes;
mod tasks;

pub use counts::{Counting, StoredCount, stored_counts};
pub use grant::grant_statements;
pub use known::{Known, KnownAgent};
pub use leases::work_tickets_query;
pub use notes::{notes_as_json, notes_from_json};
pub use tasks::TaskQueries;

/// The statuses of [`TaskStatus::is_finished`](crate::task::TaskStatus::is_finished), as an SQL list.
pub const FINISHED: &str = "('completed', 'skipped')";
/// All other statuses.
pub const UNFINISHED: &str = "('pending', 'in_progress', 'review', 'failed')";

/// The database that a statement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// A table by its full name.
    pub fn name(self, table: &Table) -> String {
        match self {
            Self::Sqlite => table.name.to_owned(),
            Self::Postgres => format!("tenure.{}", table.name),
        }
    }

    /// The start of a condition: only rows of the project.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "project = $1 AND ",
        }
    }

    /// Numbers the parameters, which are written as `?`.
    pub fn numbered(self, sql: &str) -> String {
        if self == Self::Sqlite {
            return sql.to_owned();
        }
        let mut pieces = sql.split('?');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for (number, piece) in (2..).zip(pieces) {
            text.extend(["$", &u32::to_string(&number), piece]);
        }
        text
    }

    /// A statement that is written as PostgreSQL executes it. SQLite's has neither the schema nor the conditions
    /// `project = $1 AND`, and its parameters begin at 1.
    pub fn statement(self, sql: &str) -> String {
        match self {
            Self::Sqlite => without_project(sql),
            Self::Postgres => self.numbered(sql),
        }
    }

    /// The texts of a parameter that is a list in JSON, as rows `listed` with the column `value`.
    fn list(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("json_each({parameter}) AS listed"),
            Self::Postgres => format!("json_array_elements_text({parameter}::text::json) AS listed (value)"),
        }
    }

    /// The condition that a column has one of the values that `rows` selects. They are read before the table, so that an index
    /// on the column finds its rows.
    fn one_of(self, column: &str, rows: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} IN ({rows})"),
            Self::Postgres => format!("{column} = ANY (ARRAY({rows}))"),
        }
    }

    /// The condition that a column has one of the texts of a parameter that is a list in JSON.
    pub(super) fn listed(self, column: &str, parameter: &str) -> String {
        self.one_of(column, &format!("SELECT value FROM {}", self.list(parameter)))
    }

    /// Selects all columns of the rows that match `rest`: a condition and optional further clauses.
    pub fn select(self, table: &Table, rest: &str) -> String {
        self.numbered(&format!(
            "SELECT {} FROM {} WHERE {}{rest}",
            table.list,
            self.name(table),
            self.scope()
        ))
    }

    pub fn count(self, table: &Table, condition: &str) -> String {
        self.numbered(&format!("SELECT count(*) FROM {} WHERE {}{condition}", self.name(table), self.scope()))
    }

    pub fn insert<'c>(self, table: &Table, columns: impl Iterator<Item = &'c Column>) -> String {
        let columns: Vec<Column> = columns.copied().collect();
        let (list, places) = (names(&columns), vec!["?"; columns.len()].join(", "));
        match self {
            Self::Sqlite => format!("INSERT INTO {} ({list}) VALUES ({places})", table.name),
            Self::Postgres => {
                let places = self.numbered(&places);
                format!("INSERT INTO tenure.{} (project, {list}) VALUES ($1, {places})", table.name)
            }
        }
    }

    /// Inserts a row, or replaces the one with the same key except for its columns `kept`.
    pub fn upsert<'c>(
        self,
        table: &Table,
        columns: impl Iterator<Item = &'c Column> + Clone,
        kept: &[Column],
    ) -> String {
        let replaced = columns.clone().filter(|column| !table.key.contains(column) && !kept.contains(column));
        let sets: Vec<String> = replaced.map(|column| format!("{0} = excluded.{0}", column.name)).collect();
        let project = if self == Self::Postgres { "project, " } else { "" };
        format!(
            "{} ON CONFLICT ({project}{}) DO UPDATE SET {}",
            self.insert(table, columns),
            names(table.key),
            sets.join(", ")
        )
    }

    /// Sets some columns of the rows whose columns `key` have given values. The parameters of `set` come first.
    pub fn update<'c>(
        self,
        table: &Table,
        set: impl Iterator<Item = &'c Column>,
        key: impl Iterator<Item = &'c Column>,
    ) -> String {
        let sets: Vec<String> = set.map(|column| format!("{} = ?", column.name)).collect();
        let condition = all_equal(key);
        self.numbered(&format!(
            "UPDATE {} SET {} WHERE {}{condition}",
            self.name(table),
            sets.join(", "),
            self.scope()
        ))
    }

    /// Deletes the rows that match a condition.
    pub(super) fn delete_where(self, table: &Table, condition: &str) -> String {
        self.numbered(&format!("DELETE FROM {} WHERE {}{condition}", self.name(table), self.scope()))
    }

    pub fn delete<'c>(self, table: &Table, key: impl Iterator<Item = &'c Column>) -> String {
        self.delete_where(table, &all_equal(key))
    }
}

fn without_project(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut pieces = sql.split("project = $1 AND ");
    let mut piece = pieces.next();
    while let Some(part) = piece {
        piece = pieces.next();
        // The condition may begin with the alias of its table.
        let with_alias = part.strip_suffix('.').filter(|_| piece.is_some());
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.push_str(with_alias.map_or(part, |part| part.trim_end_matches(is_of_name)));
    }
    let mut pieces = text.split('$');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        let number = number.parse::<u32>().unwrap_or(0).saturating_sub(1);
        text.extend(["?", &number.to_string(), rest]);
    }
    text.replace("tenure.", "")
}

/// A statement that is rendered once for each dialect.
pub struct Statement {
    render: fn(Dialect) -> String,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

impl std::fmt::Debug for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Statement").field(&self.text(Dialect::Postgres)).finish()
    }
}

impl Statement {
    pub const fn new(render: fn(Dialect) -> String) -> Self {
        Self { render, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    pub fn text(&self, dialect: Dialect) -> &str {
        let text = match dialect {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        };
        text.get_or_init(|| (self.render)(dialect))
    }
}

fn all_equal<'c>(key: impl Iterator<Item = &'c Column>) -> String {
    let terms: Vec<String> = key.map(|column| format!("{} = ?", column.name)).collect();
    terms.join(" AND ")
}

/// The part of a transaction that is the same in every SQL store.
#[derive(Debug)]
pub struct TxState {
    /// See [`View::now`].
    pub now: Timestamp,
    dead_processes: OnceCell<Vec<Incarnation>>,
    /// The doorbells to ring after the commit.
    pub rings: Vec<String>,
    /// See [`Tx::skip_sync`].
    pub skips_sync: bool,
}

impl TxState {
    pub fn new(now: Timestamp) -> Self {
        Self { now, dead_processes: OnceCell::new(), rings: Vec::new(), skips_sync: false }
    }
}

impl<T: SqlTx> View for T {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn dead_processes(&self) -> &OnceCell<Vec<Incarnation>> {
        &self.state().dead_processes
    }
}

impl<T: SqlTx> Tx for T {
    fn skip_sync(&mut self) {
        self.state_mut().skips_sync = true;
    }
}

/// A transaction of an SQL store. In conditions, each `?` is the parameter for the next value.
pub trait SqlTx: TaskQueries + Known + Counting + Sized {
    const DIALECT: Dialect;

    fn state(&self) -> &TxState;
    fn state_mut(&mut self) -> &mut TxState;

    /// The rows that a query returns. The project is not among the values.
    fn query<T>(
        &self,
        sql: &str,
        values: &[Cell<'_>],
        read: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Vec<T>>;

    /// Executes a statement that changes rows of `table`, and returns how many.
    fn execute(&mut self, table: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<u64>;

    /// As `execute`, but the store may delay the statement until its next query or the commit.
    fn defer(&mut self, table: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.execute(table, sql, values).map(drop)
    }

    /// As `defer`, for a write that has the same effect if it is executed twice.
    fn defer_repeatable(
        &mut self,
        table: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<()> {
        self.defer(table, sql, values)
    }

    /// As `defer`, for a write that is allowed in a shared turn, because no other claim reads its rows.
    fn defer_shared(
        &mut self,
        table: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<()> {
        self.defer(table, sql, values)
    }

    /// As `execute`, for a write that has the same effect if it is executed twice.
    fn execute_repeatable(
        &mut self,
        table: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<u64> {
        self.execute(table, sql, values)
    }

    /// Inserts a row whose key is a number that the store draws, and returns that number.
    fn insert_numbered(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<i64>;

    /// Inserts rows with values for `columns`.
    fn insert_rows(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        rows: &[Vec<Cell<'_>>],
    ) -> Result<()>;

    /// See [`WriteLeases::grant`](super::WriteLeases::grant).
    fn insert_lease(&mut self, new: &NewLease) -> Result<Option<Lease>>;

    /// A time as columns of the kind `StoreTime` store it, for conditions on them.
    fn on_store_clock(&self, at: Timestamp) -> Timestamp {
        at
    }

    /// Inserts an event. The store may buffer it until [`SqlTx::flush_events`] or the commit.
    fn insert_event(&mut self, event: NewEvent<'_>) -> Result<()> {
        let values = event.values(self.state().now)?;
        self.insert(&events::TABLE, &values)
    }

    /// Writes the buffered events, so that a query finds them.
    fn flush_events(&self) {}

    /// Fails while other transactions may write, if the answer depends on rows that they may change. The store then
    /// runs the transaction again alone.
    fn require_exclusive_turn(&self) -> Result<()> {
        Ok(())
    }

    /// Fails if an event may be committed later than one with a greater number. A reader of the feed continues after
    /// the last number that it has seen, so it would miss that event. The store then runs the transaction again alone.
    fn require_whole_feed(&self) -> Result<()> {
        Ok(())
    }

    /// See [`WriteTasks::take_task_number`](super::WriteTasks::take_task_number).
    fn draw_task_number(&mut self) -> Result<i64>;

    /// Changes the status of a task and nothing else. This write is allowed in a shared turn.
    fn write_status(&mut self, id: &TaskId, from: TaskStatus, to: TaskStatus) -> Result<()>;

    /// The rows that match `rest`: a condition and optional further clauses.
    fn select<T: Record>(&self, rest: &str, values: &[Cell<'_>]) -> Result<Vec<T>> {
        let sql = Self::DIALECT.select(T::TABLE, rest);
        self.query(&sql, values, |row| T::load(row, 0))
    }

    /// The rows that a statement selects: all columns of a table.
    fn records<T: Record>(&self, statement: &Statement, values: &[Cell<'_>]) -> Result<Vec<T>> {
        self.query(statement.text(Self::DIALECT), values, |row| T::load(row, 0))
    }

    fn count(&self, table: &Table, condition: &str, values: &[Cell<'_>]) -> Result<u64> {
        let found = self.query(&Self::DIALECT.count(table, condition), values, |row| row.count(0))?;
        Ok(found.first().copied().unwrap_or(0))
    }

    fn insert(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.execute(table, &Self::DIALECT.insert(table, columns(values)), values).map(drop)
    }

    /// Inserts a row. False if a row with its key exists.
    fn insert_new(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<bool> {
        let sql = format!("{} ON CONFLICT DO NOTHING", Self::DIALECT.insert(table, columns(values)));
        Ok(self.execute(table, &sql, values)? > 0)
    }

    /// Inserts a row, or replaces the one with the same key.
    fn upsert(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.defer(table, &Self::DIALECT.upsert(table, columns(values), &[]), values)
    }

    /// As `upsert`, for a row that only the caller writes. A claim may write it in a shared turn.
    fn upsert_own(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.defer_shared(table, &Self::DIALECT.upsert(table, columns(values), &[]), values)
    }

    /// Sets some columns of the rows whose columns `key` have these values.
    fn update(&mut self, table: &'static Table, set: Values<'_>, key: Values<'_>) -> Result<u64> {
        let sql = Self::DIALECT.update(table, columns(&set), columns(&key));
        self.execute(table, &sql, &[set, key].concat())
    }

    /// As `update`, but the store may delay it.
    fn defer_update(&mut self, table: &'static Table, set: Values<'_>, key: Values<'_>) -> Result<()> {
        let sql = Self::DIALECT.update(table, columns(&set), columns(&key));
        self.defer(table, &sql, &[set, key].concat())
    }

    /// Deletes rows and returns how many.
    fn delete(&mut self, table: &'static Table, key: &[(Column, Cell<'_>)]) -> Result<u64> {
        self.execute(table, &Self::DIALECT.delete(table, columns(key)), key)
    }
}

/// The columns of some values.
fn columns<'v>(values: &'v [(Column, Cell<'_>)]) -> impl Iterator<Item = &'v Column> + Clone {
    values.iter().map(|(column, _)| column)
}

/// `~` is greater than every character of an id.
fn after_prefix(prefix: &str) -> String {
    format!("{prefix}~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::columns::{parkings, task_deps};
    use crate::task::TaskStatus;

    #[test]
    fn the_lists_of_finished_and_of_other_statuses_are_those_of_the_rule() {
        let list = |finished| {
            let all = TaskStatus::ALL.into_iter().filter(|status| status.is_finished() == finished);
            format!("({})", all.map(|status| format!("'{status}'")).collect::<Vec<_>>().join(", "))
        };
        assert_eq!((FINISHED, UNFINISHED), (list(true).as_str(), list(false).as_str()));
    }

    #[test]
    fn a_statement_for_sqlite_has_no_schema_and_no_project() {
        let sql = "SELECT t.id FROM tenure.leases l JOIN tenure.tasks t ON t.project = $1 AND t.id = l.resource_id
                   WHERE l.project = $1 AND l.fence = $2 AND (SELECT 1 FROM tenure.tasks WHERE project = $1 AND id = $3)";
        assert_eq!(
            Dialect::Sqlite.statement(sql),
            "SELECT t.id FROM leases l JOIN tasks t ON t.id = l.resource_id
                   WHERE l.fence = ?1 AND (SELECT 1 FROM tasks WHERE id = ?2)"
        );
        assert_eq!(Dialect::Postgres.statement(sql), sql);
        assert_eq!(
            Dialect::Postgres.statement("DELETE FROM tenure.tasks WHERE project = $1 AND id = ? AND key = ?"),
            "DELETE FROM tenure.tasks WHERE project = $1 AND id = $2 AND key = $3"
        );
    }

    #[test]
    fn a_statement_for_sqlite_has_none_of_two_adjacent_conditions_on_the_project() {
        let sql = "SELECT 1 FROM tenure.leases l, tenure.tasks t
                   WHERE l.project = $1 AND t.project = $1 AND t.id = l.resource_id AND (project = $1 AND t.key = $2)";
        assert_eq!(
            Dialect::Sqlite.statement(sql),
            "SELECT 1 FROM leases l, tasks t
                   WHERE t.id = l.resource_id AND (t.key = ?1)"
        );
    }

    #[test]
    fn statements_of_both_dialects_differ_in_the_project_and_in_their_parameters() {
        let rest = "task_id = ? AND depends_on > ? ORDER BY depends_on";
        assert_eq!(
            Dialect::Sqlite.select(&task_deps::TABLE, rest),
            "SELECT task_id, depends_on FROM task_deps WHERE task_id = ? AND depends_on > ? ORDER BY depends_on"
        );
        assert_eq!(
            Dialect::Postgres.select(&task_deps::TABLE, rest),
            "SELECT task_id, depends_on FROM tenure.task_deps WHERE project = $1 AND task_id = $2 AND depends_on > $3 \
             ORDER BY depends_on"
        );
        let columns = [parkings::subject, parkings::reason, parkings::parked_at];
        assert_eq!(
            Dialect::Postgres.upsert(&parkings::TABLE, columns.iter(), &[parkings::parked_at]),
            "INSERT INTO tenure.parkings (project, subject, reason, parked_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (project, subject) DO UPDATE SET reason = excluded.reason"
        );
        assert_eq!(
            Dialect::Postgres.update(&parkings::TABLE, columns[1..].iter(), columns[..1].iter()),
            "UPDATE tenure.parkings SET reason = $2, parked_at = $3 WHERE project = $1 AND subject = $4"
        );
    }
}
