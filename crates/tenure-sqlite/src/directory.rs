//! The global database: a directory of projects and of runners, and nothing else.
//!
//! It has no leases. If it cannot be written, work continues, and the next command that lists its runners corrects them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use tenure_core::id::{SectionId, TaskId};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::{Clock, Error, Result, Timestamp};

use crate::error::{io_error, sql_error};
use crate::gate::Gate;
use crate::rows::to_json;

const MIGRATIONS: [&str; 1] = [include_str!("../schema/directory-001.sql")];
const LATEST: i64 = 1;

#[derive(Debug)]
pub struct Directory {
    pub(crate) conn: Connection,
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
    /// The `project.id` at the time of registration.
    pub project_id: Option<String>,
}

const PROJECT_COLUMNS: &str = "path, name, registered_at, last_seen_at, enabled, project_id";

const PATIENCE: Duration = Duration::from_secs(5);

impl Directory {
    /// Opens the directory in `home` (`~/.tenure`), and creates both if they do not exist.
    pub fn open(home: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        crate::sys::private_folder()
            .recursive(true)
            .create(home)
            .map_err(|e| io_error(&e, "create", home))?;
        let path = Self::file(home);
        crate::connection::make_private(&path)?;
        let conn = Connection::open_with_flags(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(|e| sql_error(&e))?;
        conn.busy_timeout(PATIENCE).map_err(|e| sql_error(&e))?;
        // Otherwise the last process to close would lock out all others during the checkpoint, and it may be stopped at
        // that moment.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(|e| sql_error(&e))?;
        let gate = Gate::beside(&path);
        let directory = Self { conn, gate, clock };
        directory.migrate()?;
        Ok(directory)
    }

    /// The file of the directory in `home`.
    pub fn file(home: &Path) -> PathBuf {
        home.join("tenure.db")
    }

    /// Opens the directory only if there is one.
    pub fn open_existing(home: &Path, clock: Arc<dyn Clock>) -> Result<Option<Self>> {
        if Self::file(home).exists() { Self::open(home, clock).map(Some) } else { Ok(None) }
    }

    fn version(&self) -> Result<i64> {
        let found =
            self.conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(|e| sql_error(&e))?;
        if found > LATEST { Err(Error::StoreTooNew { found, known: LATEST }) } else { Ok(found) }
    }

    fn migrate(&self) -> Result<()> {
        if self.version()? == LATEST {
            return Ok(());
        }
        let _pass = self.gate.enter(PATIENCE)?;
        let from = usize::try_from(self.version()?).unwrap_or(0);
        let rest = MIGRATIONS.iter().skip(from).copied().collect::<String>();
        if rest.is_empty() {
            return Ok(());
        }
        let migrate = || -> rusqlite::Result<()> {
            self.conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            self.conn
                .execute_batch(&format!("BEGIN IMMEDIATE; {rest} PRAGMA user_version = {LATEST}; COMMIT;"))
        };
        migrate().map_err(|e| sql_error(&e))
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.now().as_millis()
    }

    pub(crate) fn write<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let _pass = self.gate.enter(PATIENCE)?;
        body(&self.conn).map_err(|e| sql_error(&e))
    }

    /// Registers a project, or records that it was seen.
    pub fn register(&self, path: &Path, name: Option<&str>, project_id: Option<&str>) -> Result<()> {
        let now = self.now();
        self.write(|conn| {
            conn.execute(
                "INSERT INTO known_projects (path, name, registered_at, last_seen_at, enabled, project_id)
                 VALUES (?1, ?2, ?3, ?3, 1, ?4)
                 ON CONFLICT (path) DO UPDATE SET last_seen_at = ?3, name = coalesce(?2, name),
                   project_id = coalesce(?4, project_id)",
                params![path.to_string_lossy(), name, now, project_id],
            )
        })
        .map(drop)
    }

    /// Removes a project. False if it was not registered.
    pub fn remove(&self, path: &Path) -> Result<bool> {
        self.write(|conn| {
            conn.execute("DELETE FROM known_projects WHERE path = ?1", [path.to_string_lossy()])
        })
        .map(|n| n > 0)
    }

    /// False if the project is not registered.
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
                &format!("SELECT {PROJECT_COLUMNS} FROM known_projects WHERE path = ?1"),
                [path.to_string_lossy()],
                read_project,
            )
            .optional()
            .map_err(|e| sql_error(&e))
    }

    pub fn projects(&self) -> Result<Vec<KnownProject>> {
        let read = || -> rusqlite::Result<Vec<_>> {
            self.conn
                .prepare(&format!("SELECT {PROJECT_COLUMNS} FROM known_projects ORDER BY path"))?
                .query_map([], read_project)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }
}

/// A runner as it was last saved in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRunner {
    pub runner: Runner,
    pub section_name: Option<String>,
}

impl Directory {
    /// Inserts or updates a runner.
    pub fn save_runner(&self, known: &KnownRunner) -> Result<()> {
        let runner = &known.runner;
        self.write(|conn| {
            conn.prepare_cached(
                "INSERT INTO known_runners (id, status, process, project_path, section_id, section_name,
                   current_task_id, log_path, started_at, heartbeat_at, completed_at, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT (id) DO UPDATE SET status = ?2, section_id = ?5, section_name = ?6, current_task_id = ?7,
                   heartbeat_at = ?10, completed_at = ?11, error = ?12",
            )?
            .execute(params![
                runner.id,
                runner.status.as_str(),
                to_json(&runner.process)?,
                runner.project_path,
                runner.section.as_ref().map(SectionId::as_str),
                known.section_name,
                runner.current_task.as_ref().map(TaskId::as_str),
                runner.log_path,
                runner.started_at.as_millis(),
                runner.heartbeat_at.as_millis(),
                runner.completed_at.map(Timestamp::as_millis),
                runner.error,
            ])
        })
        .map(drop)
    }

    /// Newest first.
    pub fn runners(&self) -> Result<Vec<KnownRunner>> {
        let read = || -> rusqlite::Result<Vec<_>> {
            self.conn
                .prepare(
                    "SELECT id, status, process, project_path, section_id, section_name, current_task_id, log_path,
                            started_at, heartbeat_at, completed_at, error
                     FROM known_runners ORDER BY started_at DESC, id",
                )?
                .query_map([], read_runner)?
                .collect()
        };
        read().map_err(|e| sql_error(&e))
    }

    /// Deletes runners that ended before `then`.
    pub fn forget_runners(&self, then: Timestamp) -> Result<()> {
        self.write(|conn| {
            conn.execute("DELETE FROM known_runners WHERE completed_at < ?1", [then.as_millis()])
        })
        .map(drop)
    }
}

fn parsed<T>(index: usize, text: &str, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    parse(text).ok_or_else(|| {
        let what = format!("{text:?} is not a value that tenure stores here");
        rusqlite::Error::FromSqlConversionFailure(index, Type::Text, what.into())
    })
}

fn read_runner(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownRunner> {
    Ok(KnownRunner {
        runner: Runner {
            id: row.get(0)?,
            status: parsed(1, &row.get::<_, String>(1)?, RunnerStatus::parse)?,
            process: parsed(2, &row.get::<_, String>(2)?, |text| serde_json::from_str(text).ok())?,
            project_path: row.get(3)?,
            section: row.get::<_, Option<String>>(4)?.map(SectionId::new),
            preset: String::new(),
            current_task: row.get::<_, Option<String>>(6)?.map(TaskId::new),
            log_path: row.get(7)?,
            started_at: Timestamp::from_millis(row.get(8)?),
            heartbeat_at: Timestamp::from_millis(row.get(9)?),
            completed_at: row.get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
            error: row.get(11)?,
        },
        section_name: row.get(5)?,
    })
}

fn read_project(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownProject> {
    Ok(KnownProject {
        path: PathBuf::from(row.get::<_, String>(0)?),
        name: row.get(1)?,
        registered_at: Timestamp::from_millis(row.get(2)?),
        last_seen_at: Timestamp::from_millis(row.get(3)?),
        enabled: row.get(4)?,
        project_id: row.get(5)?,
    })
}
