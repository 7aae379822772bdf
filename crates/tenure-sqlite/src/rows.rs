//! Rows of SQLite's results, and statements over whole tables.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tenure_core::id::{Fence, TaskId};
use tenure_core::lease::Lease;
use tenure_core::store::columns::leases;
use tenure_core::store::{
    Cell, CellKind, Column, Dialect, Known, NewLease, Row, SqlTx, Table, TxState, unexpected,
};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result, Timestamp};

use crate::connection::Transaction;
use crate::error::sql_error;

pub(crate) const SET_STATUS: &str =
    "UPDATE tasks SET status = ?3, updated_at = ?4 WHERE id = ?1 AND status = ?2";

pub(crate) type Sql<T> = rusqlite::Result<T>;

struct SqliteRow<'a> {
    row: &'a rusqlite::Row<'a>,
    ahead: i64,
}

impl Row for SqliteRow<'_> {
    fn int(&self, at: usize) -> Result<Option<i64>> {
        self.row.get_ref(at).map_err(|e| sql_error(&e))?.as_i64_or_null().map_err(unexpected)
    }

    fn text(&self, at: usize) -> Result<Option<&str>> {
        self.row.get_ref(at).map_err(|e| sql_error(&e))?.as_str_or_null().map_err(unexpected)
    }

    fn ahead(&self) -> i64 {
        self.ahead
    }
}

/// A cell as a parameter.
pub(crate) struct Bound<'a>(pub(crate) &'a Cell<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(parameter(self.0))
    }
}

fn parameter<'a>(cell: &'a Cell<'_>) -> ToSqlOutput<'a> {
    match cell {
        Cell::Null => ToSqlOutput::Owned(Value::Null),
        Cell::Int(number) => ToSqlOutput::Owned(Value::Integer(*number)),
        Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
    }
}

/// A cell for a column, as a parameter. A time is converted to the clock of the column.
struct BoundFor<'a> {
    column: &'a Column,
    cell: &'a Cell<'a>,
    ahead: i64,
}

impl ToSql for BoundFor<'_> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(match (self.column.kind, self.cell) {
            (CellKind::StoreTime, Cell::Int(time)) => {
                ToSqlOutput::Owned(Value::Integer(time.saturating_sub(self.ahead)))
            }
            (_, cell) => parameter(cell),
        })
    }
}

fn bound(values: &[(Column, Cell<'_>)], ahead: i64) -> impl rusqlite::Params {
    rusqlite::params_from_iter(values.iter().map(move |(column, cell)| BoundFor { column, cell, ahead }))
}

impl Transaction<'_> {
    /// Reads all rows of a statement whose parameters are bound.
    pub(crate) fn read_all<T>(
        &self,
        mut rows: rusqlite::Rows<'_>,
        mut read: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|e| sql_error(&e))? {
            found.push(read(&SqliteRow { row, ahead: self.ahead })?);
        }
        Ok(found)
    }

    fn insert_row(&self, table: &Table, values: &[(Column, Cell<'_>)]) -> Sql<i64> {
        let sql = Dialect::Sqlite.insert(table, values.iter().map(|(column, _)| column));
        self.conn.prepare_cached(&sql)?.insert(bound(values, self.ahead))
    }
}

impl SqlTx for Transaction<'_> {
    const DIALECT: Dialect = Dialect::Sqlite;

    fn state(&self) -> &TxState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut TxState {
        &mut self.state
    }

    fn query<T>(
        &self,
        sql: &str,
        values: &[Cell<'_>],
        read: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.conn.prepare_cached(sql).map_err(|e| sql_error(&e))?;
        let values = rusqlite::params_from_iter(values.iter().map(Bound));
        self.read_all(statement.query(values).map_err(|e| sql_error(&e))?, read)
    }

    fn execute(&mut self, _: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<u64> {
        let changed = self.conn.prepare_cached(sql).and_then(|mut s| s.execute(bound(values, self.ahead)));
        changed.map(|count| u64::try_from(count).unwrap_or(u64::MAX)).map_err(|e| sql_error(&e))
    }

    fn insert_numbered(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<i64> {
        self.insert_row(table, values).map_err(|e| sql_error(&e))
    }

    fn insert_lease(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        match self.insert_row(&leases::TABLE, &new.values(self.state.now)?) {
            // Built here, because returning the row would cost SQLite as much as writing it.
            Ok(fence) => Ok(Some(new.granted(Fence::new(fence), self.state.now))),
            Err(rusqlite::Error::SqliteFailure(_, Some(said))) if said.contains("leases.lease_id") => {
                Ok(None)
            }
            Err(e) => Err(sql_error(&e)),
        }
    }

    fn on_store_clock(&self, at: Timestamp) -> Timestamp {
        Timestamp::from_millis(at.as_millis().saturating_sub(self.ahead))
    }

    fn insert_rows(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        rows: &[Vec<Cell<'_>>],
    ) -> Result<()> {
        let insert = || -> Sql<()> {
            let mut statement = self.conn.prepare_cached(&Dialect::Sqlite.insert(table, columns.iter()))?;
            for row in rows {
                let cells = columns.iter().zip(row);
                let cells = cells.map(|(column, cell)| BoundFor { column, cell, ahead: self.ahead });
                statement.execute(rusqlite::params_from_iter(cells))?;
            }
            Ok(())
        };
        insert().map_err(|e| sql_error(&e))
    }

    fn draw_task_number(&mut self) -> Result<i64> {
        let sql = "UPDATE meta SET value = value + 1 WHERE name = 'next_task_number' RETURNING value - 1";
        let drawn = self.conn.prepare_cached(sql).and_then(|mut s| s.query_row([], |row| row.get(0)));
        drawn.map_err(|e| sql_error(&e))
    }

    fn write_status(&mut self, id: &TaskId, from: TaskStatus, to: TaskStatus) -> Result<()> {
        let values: [&dyn ToSql; 4] =
            [&id.as_str(), &from.as_str(), &to.as_str(), &self.state.now.as_millis()];
        match self.change(SET_STATUS, &values)? {
            1 => Ok(()),
            _ => Err(Error::store(format!("task {id} is not {from}"))),
        }
    }
}

impl Known for Transaction<'_> {}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Sql<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

pub(crate) fn count(row: &rusqlite::Row<'_>, index: usize) -> Sql<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}
