//! Copies all rows of a project out of this store or into it.

use rusqlite::Row;
use rusqlite::types::Value;
use tenure_core::store::columns::names;
use tenure_core::store::{
    BATCH, COPIED_TABLES, Cell, CellKind, Column, CopiedRow, Counters, Durability, Fill, Movable, Put, SqlTx,
    Table,
};
use tenure_core::{Error, Result};

use crate::connection::{SqliteStore, Transaction};
use crate::error::sql_error;
use crate::integrity;
use crate::rows::Sql;

impl Movable for SqliteStore {
    fn hand_over(&self, put: &mut Put<'_>) -> Result<Counters> {
        let mut counters = None;
        // Holds the gate although nothing is written, so that no row changes meanwhile.
        self.inside(Durability::Process, &mut |tx| {
            for table in COPIED_TABLES {
                tx.read_table(table, put)?;
            }
            counters = Some(tx.counters().map_err(|e| sql_error(&e))?);
            Ok(())
        })?;
        counters.ok_or_else(|| Error::store("nothing was read"))
    }

    fn take_over(&self, fill: &mut Fill<'_>) -> Result<()> {
        self.inside(Durability::Power, &mut |tx| {
            if !tx.is_empty().map_err(|e| sql_error(&e))? {
                return Err(Error::store("there are rows in it already"));
            }
            let counters = fill(&mut |table, rows| tx.insert_rows(table, table.copied(), &rows))?;
            let settle = || integrity::count_all(tx.conn).and_then(|()| tx.set_counters(counters));
            settle().map_err(|e| sql_error(&e))
        })
    }
}

/// Copied times are on the wall clock, because each store has a clock of its own.
fn read_row(row: &Row<'_>, columns: &[Column], ahead: i64) -> Sql<CopiedRow> {
    (0..)
        .zip(columns)
        .map(|(at, column)| {
            Ok(match row.get::<usize, Value>(at)? {
                Value::Integer(time) if column.kind == CellKind::StoreTime => {
                    Cell::Int(time.saturating_add(ahead))
                }
                Value::Integer(number) => Cell::Int(number),
                Value::Text(text) => Cell::Text(text.into()),
                Value::Null | Value::Real(_) | Value::Blob(_) => Cell::Null,
            })
        })
        .collect()
}

impl Transaction<'_> {
    fn read_table(&self, table: &'static Table, put: &mut Put<'_>) -> Result<()> {
        // Every store has the row for tasks without a section from the start, so it is not copied.
        let rest = if table.name == "sections" { "WHERE id <> ''" } else { "" };
        let sql = format!(
            "SELECT {} FROM {} {rest} ORDER BY {}",
            table.copied_values(),
            table.name,
            names(table.key)
        );
        let mut statement = self.conn.prepare(&sql).map_err(|e| sql_error(&e))?;
        let mut rows = statement.query([]).map_err(|e| sql_error(&e))?;
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(row) = rows.next().map_err(|e| sql_error(&e))? {
            batch.push(read_row(row, table.copied(), self.ahead).map_err(|e| sql_error(&e))?);
            if batch.len() == BATCH {
                put(table, std::mem::take(&mut batch))?;
            }
        }
        put(table, batch)
    }

    fn is_empty(&self) -> Sql<bool> {
        self.conn.query_row("SELECT NOT EXISTS (SELECT 1 FROM events)", [], |row| row.get(0))
    }

    fn counters(&self) -> Sql<Counters> {
        let given = |table: &str| -> Sql<i64> {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
            self.conn.query_row(sql, [table], |row| row.get(0))
        };
        let meta = "SELECT value FROM meta WHERE name = 'next_task_number'";
        let done = "SELECT coalesce(max(number), 0) FROM session_tasks";
        Ok(Counters {
            next_task: self.conn.query_row(meta, [], |row| row.get(0))?,
            last_event: given("events")?,
            last_fence: given("leases")?,
            last_number: given("messages")?.max(given("tickets")?).max(self.conn.query_row(
                done,
                [],
                |row| row.get(0),
            )?),
        })
    }

    fn set_counters(&self, to: Counters) -> Sql<()> {
        self.conn.execute("UPDATE meta SET value = ?1 WHERE name = 'next_task_number'", [to.next_task])?;
        let tables = [
            ("events", to.last_event),
            ("leases", to.last_fence),
            ("messages", to.last_number),
            ("tickets", to.last_number),
        ];
        for (table, last) in tables {
            self.conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
            self.conn.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                rusqlite::params![table, last],
            )?;
        }
        Ok(())
    }
}
