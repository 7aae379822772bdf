//! Reading and writing rows by the names of their columns, whatever the store.
//!
//! The mapping of each type is beside the type's row traits: `Task` in `tasks.rs`, `Lease` in `leases.rs`. A stored
//! value that tenure does not write is reported as an error and never interpreted.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::columns::{Cell, CellKind, Column, Table};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::holder::{Holder, HolderKind};
use crate::lease::{Resource, ResourceKind};
use crate::text::check_task_key;

/// One row of a query's result, as a database driver represents it.
pub trait Row {
    fn int(&self, at: usize) -> Result<Option<i64>>;
    fn text(&self, at: usize) -> Result<Option<&str>>;

    /// By how many milliseconds the reader's wall clock is ahead of the store's clock.
    fn ahead(&self) -> i64 {
        0
    }

    /// A number of rows.
    fn count(&self, at: usize) -> Result<u64> {
        Ok(self.int(at)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }
}

/// The columns of one table within a row, starting at some position.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    row: &'r dyn Row,
    first: usize,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("first", &self.first).finish_non_exhaustive()
    }
}

/// The values of some columns, for an `INSERT` or an `UPDATE`.
pub type Values<'a> = Vec<(Column, Cell<'a>)>;

/// A type that is stored as a row of one table.
pub trait Record: Sized {
    const TABLE: &'static Table;

    fn read(row: Reader<'_>) -> Result<Self>;

    /// Reads the columns of the table from position `first` on. An error names the row.
    fn load(row: &dyn Row, first: usize) -> Result<Self> {
        Reader::new(row, first).naming(Self::TABLE, Self::read)
    }
}

/// The error for a stored value that tenure does not write.
pub fn unexpected(what: impl std::fmt::Display) -> Error {
    Error::damaged(format!("unexpected data in the store: {what}"))
}

fn name_row(error: Error, table: &Table, row: Reader<'_>) -> Error {
    let Error::StoreDamaged { message, advice } = error else { return error };
    let key = |column: &Column| {
        let value = match column.kind {
            CellKind::Text => row.optional_text(*column).ok()?.map(|text| format!("{text:?}")),
            CellKind::Int | CellKind::StoreTime => {
                row.optional_int(*column).ok()?.map(|number| number.to_string())
            }
        };
        Some(format!("{} {}", column.name, value?))
    };
    let keys: Vec<String> = table.key.iter().filter_map(key).collect();
    Error::StoreDamaged { message: format!("{message} (table {}, {})", table.name, keys.join(", ")), advice }
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(unexpected)
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl<'r> Reader<'r> {
    /// The columns of a table whose list begins at the position `first`.
    pub fn new(row: &'r dyn Row, first: usize) -> Self {
        Self { row, first }
    }

    /// Reads a row of `table`. An error about one of its values names the row.
    pub(super) fn naming<T>(self, table: &Table, read: impl FnOnce(Self) -> Result<T>) -> Result<T> {
        read(self).map_err(|error| name_row(error, table, self))
    }

    pub fn optional_text(self, column: Column) -> Result<Option<&'r str>> {
        self.row.text(self.first + column.at)
    }

    pub fn text(self, column: Column) -> Result<&'r str> {
        self.optional_text(column)?.ok_or_else(|| missing(column))
    }

    pub fn string(self, column: Column) -> Result<String> {
        self.text(column).map(str::to_owned)
    }

    pub fn optional_string(self, column: Column) -> Result<Option<String>> {
        Ok(self.optional_text(column)?.map(str::to_owned))
    }

    /// A task's key or a job's name. It becomes part of a path, so it is not used if it has another form.
    pub fn key(self, column: Column) -> Result<String> {
        self.parsed(column, |text| check_task_key(text).is_ok().then(|| text.to_owned()))
    }

    pub fn optional_int(self, column: Column) -> Result<Option<i64>> {
        self.row.int(self.first + column.at)
    }

    pub fn int(self, column: Column) -> Result<i64> {
        self.optional_int(column)?.ok_or_else(|| missing(column))
    }

    /// A number that is stored as 64 bits and used as a narrower type.
    pub fn narrow<T: TryFrom<i64>>(self, column: Column) -> Result<T> {
        narrowed(column, self.int(column)?)
    }

    pub fn optional_narrow<T: TryFrom<i64>>(self, column: Column) -> Result<Option<T>> {
        self.optional_int(column)?.map(|wide| narrowed(column, wide)).transpose()
    }

    pub fn flag(self, column: Column) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    pub fn time(self, column: Column) -> Result<Timestamp> {
        self.int(column).map(|stored| self.on_wall_clock(column, stored))
    }

    pub fn optional_time(self, column: Column) -> Result<Option<Timestamp>> {
        Ok(self.optional_int(column)?.map(|stored| self.on_wall_clock(column, stored)))
    }

    fn on_wall_clock(self, column: Column, stored: i64) -> Timestamp {
        let ahead = if column.kind == CellKind::StoreTime { self.row.ahead() } else { 0 };
        Timestamp::from_millis(stored.saturating_add(ahead))
    }

    pub fn parsed<T>(self, column: Column, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        parsed(column, self.text(column)?, parse)
    }

    pub fn optional_parsed<T>(self, column: Column, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        self.optional_text(column)?.map(|text| parsed(column, text, parse)).transpose()
    }

    pub fn json<T: DeserializeOwned>(self, column: Column) -> Result<T> {
        serde_json::from_str(self.text(column)?).map_err(unexpected)
    }

    pub fn optional_json<T: DeserializeOwned>(self, column: Column) -> Result<Option<T>> {
        self.optional_text(column)?.map(serde_json::from_str).transpose().map_err(unexpected)
    }

    pub(super) fn resource(self, kind: Column, id: Column) -> Result<Resource> {
        Ok(Resource { kind: self.parsed(kind, ResourceKind::parse)?, id: self.string(id)? })
    }

    pub(super) fn holder(self, kind: Column, id: Column) -> Result<Holder> {
        Ok(Holder { kind: self.parsed(kind, HolderKind::parse)?, id: self.string(id)? })
    }
}

fn missing(column: Column) -> Error {
    unexpected(format!("no value of {}", column.name))
}

fn narrowed<T: TryFrom<i64>>(column: Column, wide: i64) -> Result<T> {
    T::try_from(wide).map_err(|_| unexpected(format!("{} is {wide}, which is out of range", column.name)))
}

fn parsed<T>(column: Column, text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    parse(text).ok_or_else(|| {
        unexpected(format!("{} is {text:?}, which is not a value that tenure stores here", column.name))
    })
}
