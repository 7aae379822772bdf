//! What SQLite alone needs for the rows of a claim: the limit that claims are compared with.
//!
//! The database is separate from any store. Its tables have the indexes that the store's have, so that a commit writes about
//! as many pages, and nothing else: no constraints, no rules.

use std::path::Path;

use rusqlite::{Connection, ToSql};

use crate::{Error, Result};

const TABLES: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, key TEXT UNIQUE, title TEXT, status TEXT, section_id TEXT, priority INTEGER, position INTEGER,
    open_deps INTEGER, created_at INTEGER, updated_at INTEGER
);
CREATE INDEX tasks_order ON tasks (section_id, priority, position, id, status);
CREATE INDEX tasks_position ON tasks (section_id, position);
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_title ON tasks (title);
CREATE INDEX tasks_ready ON tasks (section_id, priority, position, id) WHERE status = 'pending' AND open_deps = 0;
CREATE TABLE leases (
    fence INTEGER PRIMARY KEY AUTOINCREMENT, lease_id TEXT UNIQUE, resource_kind TEXT, resource_id TEXT, holder_kind TEXT,
    holder_id TEXT, process TEXT, ttl_ms INTEGER, acquired_at INTEGER, heartbeat_at INTEGER, expires_at INTEGER,
    claimed_from TEXT, ended_at INTEGER
);
CREATE UNIQUE INDEX leases_open ON leases (resource_kind, resource_id) WHERE ended_at IS NULL;
CREATE INDEX leases_history ON leases (resource_kind, resource_id, fence);
CREATE INDEX leases_expiry ON leases (resource_kind, expires_at) WHERE ended_at IS NULL;
CREATE INDEX leases_holder ON leases (holder_id) WHERE ended_at IS NULL;
CREATE TABLE agents (id TEXT PRIMARY KEY, joined_at INTEGER, last_seen_at INTEGER);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, kind TEXT, actor TEXT, task_id TEXT, from_status TEXT, to_status TEXT,
    fence INTEGER, detail TEXT
);
CREATE INDEX events_task ON events (task_id, seq);
";

pub(super) struct RawClaims {
    connection: Connection,
    claimed: usize,
}

impl RawClaims {
    /// A new database with this many tasks.
    pub(super) fn create(path: &Path, tasks: usize) -> Result<Self> {
        let create = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.execute_batch(TABLES)?;
            connection.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO tasks
                 SELECT printf('%08x-0000-4000-8000-%012x', i, i), 'F' || i, 'task number ' || i, 'pending', '', 100,
                        i * 1048576, 0, 0, 0 FROM n",
                [i64::try_from(tasks).unwrap_or(i64::MAX)],
            )?;
            Ok(connection)
        };
        Ok(Self { connection: create().map_err(Error::bench)?, claimed: 0 })
    }

    /// Writes what a claim of the next task writes, in one transaction.
    pub(super) fn claim_next(&mut self) -> Result<()> {
        self.claimed += 1;
        self.claim(self.claimed).map_err(Error::bench)
    }

    fn claim(&self, number: usize) -> rusqlite::Result<()> {
        let execute = |sql: &str, values: &[&dyn ToSql]| {
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map(drop)
        };
        execute("BEGIN IMMEDIATE", &[])?;
        let id: String = self
            .connection
            .prepare_cached("SELECT id FROM tasks WHERE key = ?1")?
            .query_row([format!("F{number}")], |row| row.get(0))?;
        execute(
            "INSERT INTO leases (lease_id, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                                 heartbeat_at, expires_at, claimed_from)
             VALUES (?1, 'task', ?2, 'agent', 'raw', 900000, 1794768000000, 1794768000000, 1794768900000, 'pending')",
            &[&format!("L{number:08X}"), &id],
        )?;
        let fence = self.connection.last_insert_rowid();
        let detail = format!(
            "{{\"lease\":\"L{number:08X}\",\"resource\":\"task:{id}\",\"holder\":\"agent raw\",\
             \"expiresAt\":\"2026-11-15T20:38:02.468Z\",\"takenOverFrom\":null}}"
        );
        execute(
            "INSERT INTO events (at, kind, actor, task_id, fence, detail)
             VALUES (1794768000000, 'lease.acquired', 'raw', ?1, ?2, ?3)",
            &[&id, &fence, &detail],
        )?;
        execute("UPDATE tasks SET status = 'in_progress', updated_at = 1794768000000 WHERE id = ?1", &[&id])?;
        execute(
            "INSERT INTO events (at, kind, actor, task_id, from_status, to_status, fence)
             VALUES (1794768000000, 'task.status', 'raw', ?1, 'pending', 'in_progress', ?2)",
            &[&id, &fence],
        )?;
        execute(
            "INSERT INTO agents (id, joined_at, last_seen_at) VALUES ('raw', 1, 1794768000000)
             ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at",
            &[],
        )?;
        execute("COMMIT", &[])
    }
}
