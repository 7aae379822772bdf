//! Schema migrations, one SQL file per released schema, applied under `BEGIN IMMEDIATE`.
//!
//! Until the first release the first file is edited in place. `tenure-testkit/tests/released_schemas.rs` opens a stored
//! database of every schema.

use rusqlite::Connection;
use tenure_core::{Error, Result};

use crate::error::sql_error;

const MIGRATIONS: [&str; 1] = [include_str!("../schema/001.sql")];

pub(crate) const LATEST: i64 = 1;

/// `tenu`: marks the file as a tenure database.
const APPLICATION_ID: i64 = 0x7465_6e75;

/// The schema version of the file; zero if the file is empty.
pub(crate) fn version(conn: &Connection) -> Result<i64> {
    let found: i64 =
        conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|e| sql_error(&e))?;
    if found > 0 {
        let owner: i64 =
            conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(|e| sql_error(&e))?;
        if owner != APPLICATION_ID {
            return Err(foreign());
        }
    }
    if found > LATEST {
        return Err(Error::StoreTooNew { found, known: LATEST });
    }
    Ok(found)
}

/// Refuses an empty file where a store is expected: it was truncated, or its creation was interrupted. Creating the schema
/// silently would hide that the tasks are gone.
pub(crate) fn refuse_empty(conn: &Connection) -> Result<()> {
    refuse_foreign(conn)?;
    Err(Error::Store {
        message: "the database is empty: it was truncated, or its creation was interrupted".to_owned(),
        hint: Some("restore .tenure/tenure.db from a backup, or run `tenure init` to begin anew".to_owned()),
    })
}

/// Migrates the file to the latest schema. The caller holds the gate.
pub(crate) fn migrate(conn: &Connection) -> Result<()> {
    if version(conn)? == 0 {
        refuse_foreign(conn)?;
        // Persistent, and impossible inside a transaction.
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(|e| sql_error(&e))?;
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(|e| sql_error(&e))?;
    let outcome = migrate_inside(conn);
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.execute_batch(end).map_err(|e| sql_error(&e))?;
    outcome
}

fn migrate_inside(conn: &Connection) -> Result<()> {
    let from = usize::try_from(version(conn)?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(from) {
        conn.execute_batch(migration).map_err(|e| sql_error(&e))?;
    }
    conn.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LATEST};"))
        .map_err(|e| sql_error(&e))
}

fn refuse_foreign(conn: &Connection) -> Result<()> {
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|e| sql_error(&e))?;
    if tables > 0 {
        return Err(foreign());
    }
    Ok(())
}

fn foreign() -> Error {
    Error::store("the database file belongs to another program")
}
