//! Copying a whole project from one store to another, row by row.
//!
//! Both stores have the same tables with the same columns, so a row is a list of cells. Values that a store derives
//! (counters, the project's key) are not copied. Neither are tickets: while a project is copied no lease is held, so no
//! process waits for one.

use super::columns::{self, Cell, Table};
use crate::error::Result;

/// The state of each of a store's sequences. No number may be drawn a second time, even if its row is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub next_task: i64,
    pub last_event: i64,
    pub last_fence: i64,
    pub last_number: i64,
}

/// The copied columns of one row ([`Table::copied`]).
pub type CopiedRow = Vec<Cell<'static>>;

/// Receives some rows of a table.
pub type Put<'a> = dyn FnMut(&'static Table, Vec<CopiedRow>) -> Result<()> + 'a;

/// Passes all rows to a [`Put`], table by table in the order of [`COPIED_TABLES`].
pub type Fill<'a> = dyn FnMut(&mut Put<'_>) -> Result<Counters> + 'a;

pub trait Movable {
    /// Passes all rows to `put`, read in one transaction during which nothing else writes.
    fn hand_over(&self, put: &mut Put<'_>) -> Result<Counters>;

    /// Inserts all rows in one transaction, or none. Refused if the store has any.
    fn take_over(&self, fill: &mut Fill<'_>) -> Result<()>;
}

/// How many rows are copied at a time.
pub const BATCH: usize = 1000;

/// The copied tables, in an order in which every row comes after the rows that it refers to.
pub static COPIED_TABLES: [&Table; 15] = [
    &columns::sections::TABLE,
    &columns::section_deps::TABLE,
    &columns::tasks::TABLE,
    &columns::task_deps::TABLE,
    &columns::leases::TABLE,
    &columns::attempts::TABLE,
    &columns::agents::TABLE,
    &columns::runners::TABLE,
    &columns::preset_health::TABLE,
    &columns::sessions::TABLE,
    &columns::session_tasks::TABLE,
    &columns::jobs::TABLE,
    &columns::job_items::TABLE,
    &columns::messages::TABLE,
    &columns::events::TABLE,
];
