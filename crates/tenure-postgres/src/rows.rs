//! Rows of PostgreSQL's results, and statements over whole tables.

use std::time::Duration;

use tenure_core::Result;
use tenure_core::section::Section;
use tenure_core::store::{
    Cell, CellKind, Column, Dialect, Reader, Record, Row as CoreRow, SqlTx, Table, unexpected,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::connection::Value;
use crate::sections::{read_section, section_query};
use crate::transaction::Transaction;

pub(crate) struct PgRow<'a>(pub(crate) &'a Row);

impl CoreRow for PgRow<'_> {
    fn int(&self, at: usize) -> Result<Option<i64>> {
        get(self.0, at)
    }

    fn text(&self, at: usize) -> Result<Option<&str>> {
        get(self.0, at)
    }
}

pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(unexpected)
}

/// Reads a row that consists of the columns of a table.
pub(crate) fn record<T: Record>(row: &Row) -> Result<T> {
    T::read(Reader::new(&PgRow(row), 0))
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(unexpected)
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(unexpected)
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row, index: usize) -> Result<u64> {
    PgRow(row).count(index)
}

pub(crate) fn limit_of(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads all rows.
pub(crate) fn all<T>(rows: Vec<Row>, read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}

/// Cells as parameters. A null needs the type of its column.
pub(crate) struct Parameters<'a>(Vec<Box<dyn Value + 'a>>);

impl<'a> Parameters<'a> {
    pub(crate) fn of(values: &'a [(Column, Cell<'_>)]) -> Self {
        Self(values.iter().map(|(column, cell)| parameter(cell, column.kind)).collect())
    }

    fn of_cells(cells: &'a [Cell<'_>]) -> Self {
        let kind = |cell: &Cell<'_>| if let Cell::Int(_) = cell { CellKind::Int } else { CellKind::Text };
        Self(cells.iter().map(|cell| parameter(cell, kind(cell))).collect())
    }

    pub(crate) fn values(&self) -> Vec<&dyn Value> {
        self.0.iter().map(AsRef::as_ref).collect()
    }
}

fn parameter<'a>(cell: &'a Cell<'_>, kind: CellKind) -> Box<dyn Value + 'a> {
    match (cell, kind) {
        (Cell::Int(number), _) => Box::new(*number),
        (Cell::Text(text), _) => Box::new(text.as_ref()),
        (Cell::Null, CellKind::Int) => Box::new(None::<i64>),
        (Cell::Null, CellKind::Text) => Box::new(None::<&str>),
    }
}

pub(crate) fn insert_sql(table: &Table, values: &[(Column, Cell<'_>)]) -> String {
    Dialect::Postgres.insert(table, values.iter().map(|(column, _)| column))
}

pub(crate) fn update_sql(table: &Table, set: &[(Column, Cell<'_>)], key: Column) -> String {
    Dialect::Postgres.update(table, set.iter().map(|(column, _)| column), [key].iter())
}

impl SqlTx for Transaction<'_> {
    const DIALECT: Dialect = Dialect::Postgres;

    fn query<T>(
        &self,
        sql: &str,
        values: &[Cell<'_>],
        mut read: impl FnMut(&dyn CoreRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.rows(sql, &Parameters::of_cells(values).values())?;
        rows.iter().map(|row| read(&PgRow(row))).collect()
    }

    fn execute(&mut self, _: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<u64> {
        let changed = self.change(&format!("{sql} RETURNING 1"), &Parameters::of(values).values())?;
        Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
    }

    fn defer(&mut self, table: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.keep(table.name, sql, &Parameters::of(values).values())
    }

    fn sections_where(&self, rest: &str, values: &[Cell<'_>]) -> Result<Vec<Section>> {
        let sql = Dialect::Postgres.numbered(&section_query(rest));
        all(self.rows(&sql, &Parameters::of_cells(values).values())?, read_section)
    }
}
