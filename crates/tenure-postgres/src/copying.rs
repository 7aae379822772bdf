//! Copies all rows of a project out of this store or into it.

use tenure_core::store::columns::names;
use tenure_core::store::{
    BATCH, CellKind, CopiedRow, Counters, Dialect, Movable, Put, SqlTx, Standing, Table, Transfer,
    stored_counts,
};
use tenure_core::{Error, Result};

use crate::rows::get;
use crate::store::PostgresStore;
use crate::transaction::Transaction;

impl Movable for PostgresStore {
    fn transfer_with(&self, body: &mut dyn FnMut(&mut dyn Transfer) -> Result<()>) -> Result<()> {
        self.transfer(&mut |tx| body(tx))
    }
}

impl Transfer for Transaction<'_> {
    fn standing(&self) -> Result<Standing> {
        let row = self.row("SELECT standing FROM tenure.projects WHERE id = $1", &[])?;
        let text: Option<String> = row.map(|row| get(&row, 0)).transpose()?.flatten();
        Standing::from_text(text.as_deref())
    }

    fn set_standing(&mut self, to: &Standing) -> Result<()> {
        self.change("UPDATE tenure.projects SET standing = $2 WHERE id = $1", &[&to.to_text()?]).map(drop)
    }

    fn is_empty(&self) -> Result<bool> {
        let found = self.row("SELECT EXISTS (SELECT 1 FROM tenure.events WHERE project = $1)", &[])?;
        Ok(!found.is_some_and(|row| row.get(0)))
    }

    fn read_rows(&self, table: &'static Table, put: &mut Put<'_>) -> Result<()> {
        let name = table.name;
        // A project's id is a UUID, so it needs no quoting.
        self.run(&format!(
            "DECLARE moving_{name} NO SCROLL CURSOR FOR SELECT {} FROM tenure.{name} WHERE project = '{}' {}
             ORDER BY {}",
            table.copied_values(),
            self.project,
            own_rows(table),
            names(table.key)
        ))?;
        loop {
            let rows = self.bare(&format!("FETCH {BATCH} FROM moving_{name}"))?;
            let read = |row: &tokio_postgres::Row| {
                let cells = table.copied().iter().map(|column| {
                    Ok(match column.kind {
                        CellKind::Int | CellKind::StoreTime => get::<Option<i64>>(row, column.at)?.into(),
                        CellKind::Text => get::<Option<String>>(row, column.at)?.into(),
                    })
                });
                cells.collect::<Result<CopiedRow>>()
            };
            let batch = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
            let last = batch.len() < BATCH;
            put(table, batch)?;
            if last {
                break;
            }
        }
        self.run(&format!("CLOSE moving_{name}"))
    }

    fn insert_rows(&mut self, table: &'static Table, rows: &[CopiedRow]) -> Result<()> {
        SqlTx::insert_rows(self, table, table.copied(), rows)
    }

    fn delete_rows(&mut self, table: &'static Table) -> Result<()> {
        let sql = format!("DELETE FROM tenure.{} WHERE project = $1 {}", table.name, own_rows(table));
        self.change(&sql, &[]).map(drop)
    }

    /// Counts the tasks of sections. Triggers have counted the rest as the rows were written.
    fn derive_values(&mut self) -> Result<()> {
        let mut counts =
            stored_counts(Dialect::Postgres).into_iter().filter(|count| count.table == "sections");
        counts.try_for_each(|count| self.change(&count.recount, &[]).map(drop))
    }

    fn counters(&self) -> Result<Counters> {
        let row = self.row(
            "SELECT next_task, (SELECT last_value FROM tenure.event_numbers), (SELECT last_value FROM tenure.fences),
                    (SELECT last_value FROM tenure.numbers)
             FROM tenure.projects WHERE id = $1",
            &[],
        )?;
        let row = row.ok_or_else(|| Error::store("the project is gone"))?;
        Ok(Counters {
            next_task: get(&row, 0)?,
            last_event: get(&row, 1)?,
            last_fence: get(&row, 2)?,
            last_number: get(&row, 3)?,
        })
    }

    fn raise_counters(&mut self, to: Counters) -> Result<()> {
        self.next_task = self.next_task.max(to.next_task);
        self.raise_sequence("fences", to.last_fence)?;
        self.raise_sequence("numbers", to.last_number)?;
        self.raise_sequence("event_numbers", to.last_event)
    }
}

/// Every project has the row for tasks without a section from the start, so it is not copied.
fn own_rows(table: &Table) -> &'static str {
    if table.name == "sections" { "AND id <> ''" } else { "" }
}

/// How many numbers of a sequence one statement draws, so that no statement takes long.
const DRAWN_AT_ONCE: i64 = 500_000;

impl Transaction<'_> {
    /// Draws numbers until all up to `to` are used. Setting the sequence could set it back, because other projects draw
    /// from it at the same time.
    fn raise_sequence(&self, name: &str, to: i64) -> Result<()> {
        loop {
            let state = self.bare(&format!("SELECT last_value, is_called FROM tenure.{name}"))?;
            let row = state.first().ok_or_else(|| Error::store(format!("the sequence {name} is gone")))?;
            let used = get::<i64>(row, 0)? - i64::from(!get::<bool>(row, 1)?);
            let missing = to.saturating_sub(used).min(DRAWN_AT_ONCE);
            if missing <= 0 {
                return Ok(());
            }
            self.bare(&format!("SELECT max(nextval('tenure.{name}')) FROM generate_series(1, {missing})"))?;
        }
    }
}
