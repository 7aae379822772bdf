//! Schema migrations, one SQL file per released schema, applied under `BEGIN IMMEDIATE`.
//!
//! Until the first release the first file is edited in place. `tenure-testkit/tests/released_schemas.rs` opens a stored
//! database of every schema.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::error::Advice;
use tenure_core::hints;
use tenure_core::store::Standing;
use tenure_core::{Error, Result};

use crate::error::sql_error;
use crate::gate::Gate;
use crate::log;

const MIGRATIONS: [&str; 1] = [include_str!("../schema/001.sql")];

pub(crate) const LATEST: i64 = 1;

/// Half of SQLite's default. A change of a task writes one page of about twenty indexes each, and little of any.
const PAGE_SIZE: u32 = 2048;

/// How long a process waits for another one that migrates the database, whatever its patience for other writers.
const PATIENCE: Duration = Duration::from_mins(30);

/// `tenu`: marks the file as a tenure database.
const APPLICATION_ID: i64 = 0x7465_6e75;

/// Part of the file's `user_version` while the store does not serve ([`Standing`]). So one value, which costs nothing to
/// read, tells every transaction whether its schema is still the right one and whether the store serves.
const NOT_SERVING: i64 = 1 << 30;

fn user_version(conn: &Connection) -> Result<i64> {
    conn.prepare_cached("PRAGMA user_version")
        .and_then(|mut pragma| pragma.query_row([], |row| row.get(0)))
        .map_err(|e| sql_error(&e))
}

/// The schema version of the file; zero if the file is empty.
pub(crate) fn version(conn: &Connection) -> Result<i64> {
    let found = user_version(conn)? & !NOT_SERVING;
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

/// Called at the beginning of every transaction. Another process may have migrated the database or copied it to another
/// store since this one opened it.
pub(crate) fn check_serving(conn: &Connection) -> Result<()> {
    let found = user_version(conn)?;
    if found == LATEST {
        return Ok(());
    }
    version(conn)?;
    standing(conn)?.require_serving()?;
    Err(Error::damaged("the database was replaced by one of an older schema"))
}

pub(crate) fn standing(conn: &Connection) -> Result<Standing> {
    let text: Option<String> =
        conn.query_row("SELECT standing FROM identity", [], |row| row.get(0)).map_err(|e| sql_error(&e))?;
    Standing::from_text(text.as_deref())
}

/// To be called inside a transaction.
pub(crate) fn set_standing(conn: &Connection, to: &Standing) -> Result<()> {
    let text = to.to_text()?;
    let mark = if text.is_some() { NOT_SERVING } else { 0 };
    conn.execute("UPDATE identity SET standing = ?1", [text]).map_err(|e| sql_error(&e))?;
    conn.execute_batch(&format!("PRAGMA user_version = {}", LATEST | mark)).map_err(|e| sql_error(&e))
}

/// Refuses an empty file where a store is expected: it was truncated, or its creation was interrupted. Creating the schema
/// silently would hide that the tasks are gone.
pub(crate) fn refuse_empty(conn: &Connection) -> Result<()> {
    refuse_foreign(conn)?;
    Err(Error::StoreDamaged {
        message: "the database is empty: it was truncated, or its creation was interrupted".to_owned(),
        advice: Advice::hints([hints::restore_backup(), hints::begin_anew()]),
    })
}

/// Migrates the file to the latest schema. Waits for a process that is doing so already.
pub(crate) fn migrate(conn: &Connection, gate: &Gate) -> Result<()> {
    migrate_with(conn, gate, &MIGRATIONS)
}

fn migrate_with(conn: &Connection, gate: &Gate, migrations: &[&str]) -> Result<()> {
    let _pass = gate.enter(PATIENCE)?;
    conn.busy_timeout(PATIENCE).map_err(|e| sql_error(&e))?;
    if version(conn)? == 0 {
        refuse_foreign(conn)?;
        // Both are persistent, and impossible inside a transaction.
        conn.execute_batch(&format!("PRAGMA page_size = {PAGE_SIZE}")).map_err(|e| sql_error(&e))?;
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(|e| sql_error(&e))?;
        // The first read creates the log.
        user_version(conn)?;
        conn.path().into_iter().for_each(|path| log::keep_name(Path::new(path)));
    }
    conn.execute_batch("BEGIN IMMEDIATE").map_err(|e| sql_error(&e))?;
    let outcome = migrate_inside(conn, migrations);
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    conn.execute_batch(end).map_err(|e| sql_error(&e))?;
    outcome
}

fn migrate_inside(conn: &Connection, migrations: &[&str]) -> Result<()> {
    let mark = user_version(conn)? & NOT_SERVING;
    let latest = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let from = usize::try_from(version(conn)?).unwrap_or(0);
    for migration in migrations.iter().skip(from) {
        conn.execute_batch(&compact(migration)).map_err(|e| sql_error(&e))?;
    }
    conn.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
        latest | mark
    ))
    .map_err(|e| sql_error(&e))
}

/// The statements without comments and indentation: SQLite stores the text of each table, and every process reads it. A
/// comment has to be on a separate line.
fn compact(sql: &str) -> String {
    let lines = sql.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    lines.flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
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
    Error::damaged("the database file belongs to another program")
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::mpsc;

    use tenure_core::store::{Durability, Store};
    use tenure_core::{ErrorCode, SystemClock};

    use super::*;
    use crate::{OpenOptions, SqliteStore};

    fn options(patience: Duration) -> OpenOptions {
        OpenOptions { patience, ..OpenOptions::new(Arc::new(SystemClock)) }
    }

    fn database(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("tenure.db")
    }

    fn migrate_to_a_later_schema(path: &Path, statements: &str) {
        let conn = Connection::open(path).unwrap();
        migrate_with(&conn, &Gate::beside(path), &[MIGRATIONS[0], statements]).unwrap();
    }

    #[test]
    fn a_comment_in_a_migration_is_a_line_of_its_own() {
        for line in MIGRATIONS.iter().flat_map(|migration| migration.lines()).map(str::trim) {
            assert!(line.starts_with("--") || !line.contains("--"), "it would hide what follows: {line}");
        }
    }

    #[test]
    fn the_stored_schema_has_no_comments() {
        let folder = tempfile::tempdir().unwrap();
        drop(SqliteStore::create(&database(&folder), options(Duration::from_secs(10))).unwrap());
        let conn = Connection::open(database(&folder)).unwrap();
        let sql: String =
            conn.query_row("SELECT group_concat(sql) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert!(sql.contains("CREATE TABLE tasks ( id TEXT PRIMARY KEY") && !sql.contains("--"), "{sql}");
    }

    #[test]
    fn a_process_of_an_older_schema_is_refused_at_its_next_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::create(&database(&folder), options(Duration::from_secs(10))).unwrap();
        let store: &dyn Store = &store;
        store.write(Durability::Process, |tx| tx.count_tasks()).unwrap();
        migrate_to_a_later_schema(&database(&folder), "CREATE TABLE later (one INTEGER) STRICT;");
        let written = store.write(Durability::Process, |tx| tx.count_tasks());
        assert_eq!(written.unwrap_err().code(), ErrorCode::StoreTooNew);
        let read = store.read(|view| view.count_tasks());
        assert_eq!(read.unwrap_err().code(), ErrorCode::StoreTooNew);
    }

    #[test]
    fn a_process_waits_for_a_migration_that_takes_longer_than_its_patience() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(&folder);
        let (sender, receiver) = mpsc::channel();
        let migrating = {
            let path = path.clone();
            std::thread::spawn(move || {
                let pass = Gate::beside(&path).enter(PATIENCE).unwrap();
                sender.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(300));
                drop(pass);
            })
        };
        receiver.recv().unwrap();
        SqliteStore::create(&path, options(Duration::from_millis(10))).unwrap();
        migrating.join().unwrap();
    }

    #[test]
    fn a_migration_keeps_a_store_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(&folder);
        drop(SqliteStore::create(&path, options(Duration::from_secs(10))).unwrap());
        let conn = Connection::open(&path).unwrap();
        let other = tenure_core::store::OtherStore {
            id: tenure_core::id::StoreId::new("0123"),
            url: "postgres://db.example/work".to_owned(),
        };
        set_standing(&conn, &Standing::MovedTo(other.clone())).unwrap();
        migrate_with(&conn, &Gate::beside(&path), &[MIGRATIONS[0], "SELECT 1;"]).unwrap();
        assert_eq!(user_version(&conn).unwrap(), 2 | NOT_SERVING);
        assert_eq!(standing(&conn).unwrap(), Standing::MovedTo(other));
    }
}
