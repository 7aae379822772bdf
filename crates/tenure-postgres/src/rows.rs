//! Rows of PostgreSQL's results, and statements over whole tables.

use tenure_core::error::TaskName;
use tenure_core::event::NewEvent;
use tenure_core::id::{Fence, TaskId};
use tenure_core::lease::{Lease, Resource, Ticket};
use tenure_core::store::columns::names;
use tenure_core::store::{
    Cell, CellKind, Column, Counting, Dialect, Known, KnownAgent, NewLease, Record, Row as CoreRow, SqlTx,
    Table, TaskLookup, TaskNotes, TxState, unexpected,
};
use tenure_core::task::TaskStatus;
use tenure_core::{Error, Result};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::commit::event_write;
use crate::connection::Value;
use crate::error::Failure;
use crate::transaction::{PendingEvent, Transaction};

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
    T::load(&PgRow(row), 0)
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(unexpected)
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
        (Cell::Null, CellKind::Int | CellKind::StoreTime) => Box::new(None::<i64>),
        (Cell::Null, CellKind::Text) => Box::new(None::<&str>),
    }
}

/// The values of one column in some rows.
enum CellArray {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

impl CellArray {
    fn of(rows: &[Vec<Cell<'_>>], at: usize, kind: CellKind) -> Self {
        let cells = rows.iter().map(|row| row.get(at));
        match kind {
            CellKind::Int | CellKind::StoreTime => Self::Ints(
                cells
                    .map(|cell| if let Some(Cell::Int(number)) = cell { Some(*number) } else { None })
                    .collect(),
            ),
            CellKind::Text => Self::Texts(
                cells
                    .map(|cell| {
                        if let Some(Cell::Text(text)) = cell { Some(text.clone().into_owned()) } else { None }
                    })
                    .collect(),
            ),
        }
    }

    fn value(&self) -> &dyn Value {
        match self {
            Self::Ints(all) => all,
            Self::Texts(all) => all,
        }
    }
}

pub(crate) fn insert_sql(table: &Table, values: &[(Column, Cell<'_>)]) -> String {
    Dialect::Postgres.insert(table, values.iter().map(|(column, _)| column))
}

impl SqlTx for Transaction<'_> {
    const DIALECT: Dialect = Dialect::Postgres;

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
        mut read: impl FnMut(&dyn CoreRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.rows(sql, &Parameters::of_cells(values).values())?;
        rows.iter().map(|row| read(&PgRow(row))).collect()
    }

    fn execute(&mut self, _: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<u64> {
        let changed = self.change(&format!("{sql} RETURNING 1"), &Parameters::of(values).values())?;
        Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
    }

    fn execute_repeatable(
        &mut self,
        _: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<u64> {
        let changed = self.repeat(&format!("{sql} RETURNING 1"), &Parameters::of(values).values())?;
        Ok(u64::try_from(changed.len()).unwrap_or(u64::MAX))
    }

    fn defer(&mut self, table: &'static Table, sql: &str, values: &[(Column, Cell<'_>)]) -> Result<()> {
        self.keep(table.name, sql, &Parameters::of(values).values())
    }

    fn defer_repeatable(
        &mut self,
        table: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<()> {
        self.keep_repeatable(table.name, sql, &Parameters::of(values).values())
    }

    fn defer_shared(
        &mut self,
        table: &'static Table,
        sql: &str,
        values: &[(Column, Cell<'_>)],
    ) -> Result<()> {
        self.changed.set(true);
        self.keep_shared(table.name, sql, &Parameters::of(values).values());
        Ok(())
    }

    fn insert_numbered(&mut self, table: &'static Table, values: &[(Column, Cell<'_>)]) -> Result<i64> {
        let sql = format!("{} RETURNING {}", insert_sql(table, values), names(table.key));
        let rows = self.change(&sql, &Parameters::of(values).values())?;
        rows.first().map_or_else(|| Err(Error::store("the row was not written")), |row| get(row, 0))
    }

    fn insert_lease(&mut self, new: &NewLease) -> Result<Option<Lease>> {
        self.grant_drawing_fence(new)
    }

    /// Buffered until the commit.
    fn insert_event(&mut self, event: NewEvent<'_>) -> Result<()> {
        self.changed.set(true);
        let detail = if event.detail.is_null() { None } else { Some(to_json(&event.detail)?) };
        self.events.get_mut().push(PendingEvent {
            kind: event.kind.as_str(),
            actor: event.actor.to_owned(),
            task: event.task.map(|task| task.as_str().to_owned()),
            from: event.from.map(TaskStatus::as_str),
            to: event.to.map(TaskStatus::as_str),
            fence: event.fence.map(Fence::number),
            detail,
        });
        Ok(())
    }

    fn flush_events(&self) {
        let write = event_write(self.state.now, &self.events.take());
        self.writes.borrow_mut().extend(write);
    }

    fn require_exclusive_turn(&self) -> Result<()> {
        if self.shares() { Err(self.fail(Failure::NeedsExclusiveTurn)) } else { Ok(()) }
    }

    /// Of two claims that share a turn, one may draw its number first and commit last. No claim is in progress during
    /// an exclusive turn.
    fn require_whole_feed(&self) -> Result<()> {
        if self.writer.is_none() { Err(self.fail(Failure::NeedsExclusiveTurn)) } else { Ok(()) }
    }

    fn insert_rows(
        &mut self,
        table: &'static Table,
        columns: &[Column],
        rows: &[Vec<Cell<'_>>],
    ) -> Result<()> {
        let filled: Vec<CellArray> =
            columns.iter().enumerate().map(|(at, column)| CellArray::of(rows, at, column.kind)).collect();
        let values: Vec<&dyn Value> = filled.iter().map(CellArray::value).collect();
        let arrays = columns.iter().zip(2..).map(|(column, at)| match column.kind {
            CellKind::Int | CellKind::StoreTime => format!("${at}::bigint[]"),
            CellKind::Text => format!("${at}::text[]"),
        });
        let sql = format!(
            "INSERT INTO tenure.{} (project, {}) SELECT $1, * FROM unnest({})",
            table.name,
            names(columns),
            arrays.collect::<Vec<_>>().join(", ")
        );
        self.change(&sql, &values).map(drop)
    }

    fn draw_task_number(&mut self) -> Result<i64> {
        self.next_task += 1;
        Ok(self.next_task - 1)
    }

    /// The task was read in this turn, so it exists and has the status `from`.
    fn write_status(&mut self, id: &TaskId, _from: TaskStatus, to: TaskStatus) -> Result<()> {
        self.keep_shared(
            "tasks",
            "UPDATE tenure.tasks SET status = $3, updated_at = $4 WHERE project = $1 AND id = $2",
            &[&id.as_str(), &to.as_str(), &self.state.now.as_millis()],
        );
        Ok(())
    }
}

/// Triggers keep the other counts.
impl Counting for Transaction<'_> {
    fn count_for_dependents(&mut self, task: &TaskId, by: i64) -> Result<()> {
        self.keep(
            "tasks",
            "UPDATE tenure.tasks SET open_deps = open_deps + $3 WHERE project = $1
             AND id IN (SELECT task_id FROM tenure.task_deps WHERE project = $1 AND depends_on = $2)",
            &[&task.as_str(), &by],
        )
    }
}

impl Known for Transaction<'_> {
    fn known_processes(&self) -> Option<Vec<String>> {
        self.prefetched.borrow().processes.clone()
    }

    fn known_open_lease(&self, resource: &Resource) -> Option<Lease> {
        self.prefetched.borrow().granted(resource)
    }

    fn known_work_tickets(&self) -> Option<Vec<Ticket>> {
        self.prefetched.borrow().work_tickets()
    }

    fn note_work_tickets(&self, tickets: &[Ticket]) {
        self.prefetched.borrow_mut().tickets = Some(tickets.to_vec());
    }

    fn is_without_tickets(&self) -> bool {
        !self.prefetched.borrow().may_exist.tickets
    }

    fn is_without_section_leases(&self) -> bool {
        !self.prefetched.borrow().may_exist.section_leases
    }

    fn is_without_ending_attempts(&self, resource: &Resource) -> bool {
        self.prefetched.borrow().has_no_ending_attempts(resource)
    }

    fn known_agent(&mut self, id: &str) -> KnownAgent {
        match self.prefetched.borrow_mut().agent.take() {
            Some((name, seen)) if name == id => seen.map_or(KnownAgent::Unregistered, KnownAgent::SeenAt),
            _ => KnownAgent::Unknown,
        }
    }

    fn known_notes(&self, task: &TaskId, reader: &str) -> Result<Option<TaskNotes>> {
        let prefetched = self.prefetched.borrow();
        let known =
            prefetched.notes.as_ref().filter(|known| known.task == task.as_str() && known.reader == reader);
        Ok(known.map(|known| known.notes.clone()))
    }

    fn known_names(&self, lookup: TaskLookup<'_>) -> Result<Option<Vec<TaskName>>> {
        self.prefetched.borrow().named.as_ref().map_or(Ok(None), |named| named.names(lookup))
    }
}
