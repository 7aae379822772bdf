//! The global database: a directory of projects (and later of runners), and nothing else.
//!
//! No lease lives here. If it cannot be written, work goes on; whoever reads it corrects it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use tenure_core::{Clock, Error, Result, Timestamp};

use crate::error::{io_error, sql_error};
use crate::gate::Gate;

const LATEST: i64 = 1;
const SCHEMA: &str = include_str!("../schema/directory-001.sql");

#[derive(Debug)]
pub struct Directory {
    conn: Connection,
    gate: Gate,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownProject {
    pub path: PathBuf,
    pub name: Option<String>,
    pub registered_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub enabled: bool,
}

const PATIENCE: Duration = Duration::from_secs(5);

impl Directory {
    /// Opens the directory in `home` (`~/.tenure`), making both if need be.
    pub fn open(home: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(home).map_err(|e| io_error(&e, "create", home))?;
        let path = home.join("tenure.db");
        crate::connection::make_private(&path)?;
        let conn = Connection::open_with_flags(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(|e| sql_error(&e))?;
        conn.busy_timeout(PATIENCE).map_err(|e| sql_error(&e))?;
        let gate = Gate::beside(&path);
        let directory = Self { conn, gate, clock };
        directory.climb()?;
        Ok(directory)
    }

    /// Opens the directory only if there is one.
    pub fn open_existing(home: &Path, clock: Arc<dyn Clock>) -> Result<Option<Self>> {
        if home.join("tenure.db").exists() { Self::open(home, clock).map(Some) } else { Ok(None) }
    }

    fn version(&self) -> Result<i64> {
        let found =
            self.conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|e| sql_error(&e))?;
        if found > LATEST { Err(Error::StoreTooNew { found, known: LATEST }) } else { Ok(found) }
    }

    fn climb(&self) -> Result<()> {
        if self.version()? == LATEST {
            return Ok(());
        }
        let _pass = self.gate.enter(PATIENCE)?;
        if self.version()? == LATEST {
            return Ok(());
        }
        let climb = || -> rusqlite::Result<()> {
            self.conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            self.conn
                .execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {LATEST}; COMMIT;"))
        };
        climb().map_err(|e| sql_error(&e))
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millis()
    }

    fn write<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let _pass = self.gate.enter(PATIENCE)?;
        body(&self.conn).map_err(|e| sql_error(&e))
    }

    /// Enters a project, or notes that it was seen.
    pub fn register(&self, path: &Path, name: Option<&str>) -> Result<()> {
        let now = self.now();
        self.write(|conn| {
            conn.execute(
                "INSERT INTO known_projects (path, name, registered_at, last_seen_at, enabled)
                 VALUES (?1, ?2, ?3, ?3, 1)
                 ON CONFLICT (path) DO UPDATE SET last_seen_at = ?3, name = coalesce(?2, name)",
                params![path.to_string_lossy(), name, now],
            )
        })
        .map(drop)
    }

    /// False if it was not there.
    pub fn remove(&self, path: &Path) -> Result<bool> {
        self.write(|conn| {
            conn.execute("DELETE FROM known_projects WHERE path = ?1", [path.to_string_lossy()])
        })
        .map(|n| n > 0)
    }

    /// False if it was not there.
    pub fn set_enabled(&self, path: &Path, enabled: bool) -> Result<bool> {
        self.write(|conn| {
            conn.execute(
                "UPDATE known_projects SET enabled = ?2 WHERE path = ?1",
                params![path.to_string_lossy(), enabled],
            )
        })
        .map(|n| n > 0)
    }

    pub fn project(&self, path: &Path) -> Result<Option<KnownProject>> {
        self.conn
            .query_row(
                "SELECT path, name, registered_at, last_seen_at, enabled FROM known_projects WHERE path = ?1",
                [path.to_string_lossy()],
                read_project,
            )
            .optional()
            .map_err(|e| sql_error(&e))
    }

    pub fn projects(&self) -> Result<Vec<KnownProject>> {
        let read = || -> rusqlite::Result<Vec<_>> {
            self.conn
                .prepare(
                    "SELECT path, name, registered_at, last_seen_at, enabled FROM known_projects ORDER BY path",
                )?
                .query_map([], read_project)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

fn read_project(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownProject> {
    Ok(KnownProject {
        path: PathBuf::from(row.get::<_, String>(0)?),
        name: row.get(1)?,
        registered_at: Timestamp::from_millis(row.get(2)?),
        last_seen_at: Timestamp::from_millis(row.get(3)?),
        enabled: row.get(4)?,
    })
}
