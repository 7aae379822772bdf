//! Copies all rows of a project out of this store or into it.

use rusqlite::Row;
use rusqlite::types::Value;
use tenure_core::Result;
use tenure_core::store::columns::names;
use tenure_core::store::{
    BATCH, Cell, CellKind, Column, CopiedRow, Counters, Durability, Movable, Put, SqlTx, Standing, Table,
    Transfer,
};

use crate::connection::{SqliteStore, Transaction};
use crate::error::sql_error;
use crate::rows::Sql;
use crate::{integrity, migrate};

impl Movable for SqliteStore {
    fn transfer_with(&self, body: &mut dyn FnMut(&mut dyn Transfer) -> Result<()>) -> Result<()> {
        self.in_any_standing(Durability::Power, &mut |tx| body(tx))
    }
}

impl Transfer for Transaction<'_> {
    fn standing(&self) -> Result<Standing> {
        migrate::standing(self.conn)
    }

    fn set_standing(&mut self, to: &Standing) -> Result<()> {
        migrate::set_standing(self.conn, to)
    }

    fn is_empty(&self) -> Result<bool> {
        self.conn
            .query_row("SELECT NOT EXISTS (SELECT 1 FROM events)", [], |row| row.get(0))
            .map_err(|e| sql_error(&e))
    }

    fn read_rows(&self, table: &'static Table, put: &mut Put<'_>) -> Result<()> {
        let sql = format!(
            "SELECT {} FROM {} {} ORDER BY {}",
            table.copied_values(),
            table.name,
            own_rows(table),
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

    fn insert_rows(&mut self, table: &'static Table, rows: &[CopiedRow]) -> Result<()> {
        SqlTx::insert_rows(self, table, table.copied(), rows)
    }

    fn delete_rows(&mut self, table: &'static Table) -> Result<()> {
        self.change(&format!("DELETE FROM {} {}", table.name, own_rows(table)), &[]).map(drop)
    }

    fn derive_values(&mut self) -> Result<()> {
        integrity::count_all(self.conn).map_err(|e| sql_error(&e))
    }

    fn counters(&self) -> Result<Counters> {
        self.read_counters().map_err(|e| sql_error(&e))
    }

    fn raise_counters(&mut self, to: Counters) -> Result<()> {
        self.write_counters(to).map_err(|e| sql_error(&e))
    }
}

/// Every store has the row for tasks without a section from the start, so it is not copied.
fn own_rows(table: &Table) -> &'static str {
    if table.name == "sections" { "WHERE id <> ''" } else { "" }
}

/// Copied times are on the wall clock, because each store has its own clock.
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
    fn read_counters(&self) -> Sql<Counters> {
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

    fn write_counters(&self, to: Counters) -> Sql<()> {
        self.conn.execute(
            "UPDATE meta SET value = max(value, ?1) WHERE name = 'next_task_number'",
            [to.next_task],
        )?;
        let tables = [
            ("events", to.last_event),
            ("leases", to.last_fence),
            ("messages", to.last_number),
            ("tickets", to.last_number),
        ];
        for (table, last) in tables {
            // The table has no unique index that an upsert could use.
            let raised = self.conn.execute(
                "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                rusqlite::params![table, last],
            )?;
            if raised == 0 {
                self.conn.execute(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                    rusqlite::params![table, last],
                )?;
            }
        }
        Ok(())
    }
}
