//! Copies all rows of a project out of this store or into it.

use tenure_core::store::columns::names;
use tenure_core::store::{
    BATCH, COPIED_TABLES, CellKind, CopiedRow, Counters, Durability, Fill, Movable, Put, SqlTx, Table,
};
use tenure_core::{Error, Result};

use crate::rows::get;
use crate::store::PostgresStore;
use crate::transaction::Transaction;

impl Movable for PostgresStore {
    fn hand_over(&self, put: &mut Put<'_>) -> Result<Counters> {
        let mut counters = None;
        // In a write transaction although nothing is written, so that no row changes meanwhile. It is not retried,
        // because the receiver of the rows cannot start again.
        self.write_untried(Durability::Process, &mut |tx| {
            for table in COPIED_TABLES {
                tx.read_table(table, put)?;
            }
            counters = Some(tx.counters()?);
            Ok(())
        })?;
        counters.ok_or_else(|| Error::store("nothing was read"))
    }

    fn take_over(&self, fill: &mut Fill<'_>) -> Result<()> {
        self.write_untried(Durability::Power, &mut |tx| {
            let found = tx.row("SELECT EXISTS (SELECT 1 FROM tenure.events WHERE project = $1)", &[])?;
            if found.is_some_and(|row| row.get(0)) {
                return Err(Error::store("there are rows in it already"));
            }
            let counters = fill(&mut |table, rows| tx.insert_rows(table, table.copied(), &rows))?;
            tx.set_counters(counters)
        })
    }
}

/// How many numbers of a sequence one statement draws, so that no statement takes long.
const DRAWN_AT_ONCE: i64 = 500_000;

impl Transaction<'_> {
    fn read_table(&self, table: &'static Table, put: &mut Put<'_>) -> Result<()> {
        let name = table.name;
        // Every store has the row for tasks without a section from the start, so it is not copied. A project's id is a
        // UUID, so it needs no quoting.
        let rest = if name == "sections" { "AND id <> ''" } else { "" };
        self.run(&format!(
            "DECLARE moving_{name} NO SCROLL CURSOR FOR SELECT {} FROM tenure.{name} WHERE project = '{}' {rest}
             ORDER BY {}",
            table.copied_values(),
            self.project,
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

    /// The sequences are shared with other projects, so they are only ever increased.
    fn set_counters(&mut self, to: Counters) -> Result<()> {
        self.next_task = to.next_task;
        self.raise_sequence("fences", to.last_fence)?;
        self.raise_sequence("numbers", to.last_number)?;
        self.raise_sequence("event_numbers", to.last_event)
    }

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
