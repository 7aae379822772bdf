//! The schema ladder: one rung per released schema, climbed under `BEGIN IMMEDIATE`.

use rusqlite::Connection;
use tenure_core::{Error, Result};

use crate::error::sql_error;

const RUNGS: [&str; 2] = [include_str!("../schema/001.sql"), include_str!("../schema/002.sql")];

pub(crate) const LATEST: i64 = 2;

/// `tenu`: tells our database from any other.
const APPLICATION_ID: i64 = 0x7465_6e75;

/// The schema that the file has; zero for an empty one.
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

/// An empty file where a store should be: it was cut off, or making it was interrupted. To fill it in passing would
/// hide that the tasks are gone.
pub(crate) fn refuse_empty(conn: &Connection) -> Result<()> {
    refuse_foreign(conn)?;
    Err(Error::Store {
        message: "the database is empty: it was cut off, or making it was interrupted".to_owned(),
        hint: Some("restore .tenure/tenure.db from a backup, or run `tenure init` to begin anew".to_owned()),
    })
}

/// Brings the file to the latest schema. Call it with the gate held.
pub(crate) fn climb(conn: &Connection) -> Result<()> {
    if version(conn)? == 0 {
        refuse_foreign(conn)?;
        // Persistent, and not possible inside a transaction.
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(|e| sql_error(&e))?;
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(|e| sql_error(&e))?;
    let outcome = climb_inside(conn);
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.execute_batch(end).map_err(|e| sql_error(&e))?;
    outcome
}

fn climb_inside(conn: &Connection) -> Result<()> {
    let from = usize::try_from(version(conn)?).unwrap_or(0);
    for rung in RUNGS.iter().skip(from) {
        conn.execute_batch(rung).map_err(|e| sql_error(&e))?;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::event::{EventKind, NewEvent};
    use tenure_core::id::TaskId;
    use tenure_core::store::{Durability, Store};
    use tenure_core::task::TaskStatus;

    use super::*;
    use crate::{OpenOptions, SqliteStore};

    #[test]
    fn a_database_of_the_first_schema_is_counted_once_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; {}
             PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;
             INSERT INTO tasks (id, key, title, status, priority, position, created_at, updated_at)
             VALUES ('a', 'A', 'first', 'pending', 100, 1, 0, 0), ('b', 'B', 'then', 'pending', 100, 2, 0, 0);
             INSERT INTO task_deps (task_id, depends_on) VALUES ('b', 'a');",
            RUNGS[0]
        ))
        .unwrap();
        drop(old);

        let store = SqliteStore::open(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        assert_eq!(store.check(false).unwrap(), []);
        let store: Box<dyn Store> = Box::new(store);
        for (from, to) in [
            (TaskStatus::Pending, TaskStatus::Completed),
            (TaskStatus::Completed, TaskStatus::Pending),
            (TaskStatus::Pending, TaskStatus::Skipped),
        ] {
            let id = TaskId::new("a");
            let event = NewEvent::new(EventKind::TaskStatus, "ann").task(&id).status(from, to);
            store.write(Durability::Process, |tx| tx.set_status(&id, to, event.clone())).unwrap();
            assert_eq!(store.check(false).unwrap(), [], "{from} to {to}");
        }
        let conn = Connection::open(&path).unwrap();
        assert_eq!(version(&conn).unwrap(), LATEST);
        let open: i64 =
            conn.query_row("SELECT open_deps FROM tasks WHERE id = 'b'", [], |row| row.get(0)).unwrap();
        assert_eq!(open, 0);
    }
}
