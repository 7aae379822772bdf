//! The time that SQLite alone needs to write the rows of a claim: the limit that claims are compared with.
//!
//! The database is separate from any store. Its tables have the columns, checks and indexes of the store's tables, so that a
//! row costs SQLite the same in both, and pages of the same size.

use std::path::Path;

use rusqlite::{Connection, ToSql, params};

use super::fixture::{task_id, task_key, task_position, task_title};
use crate::{Error, Result};

const TABLES: &str = "
PRAGMA page_size = 2048;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
CREATE TABLE tasks (
    id          TEXT PRIMARY KEY,
    key         TEXT NOT NULL UNIQUE,
    title       TEXT NOT NULL CHECK (title <> ''),
    description TEXT NOT NULL DEFAULT '',
    status      TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    section_id  TEXT NOT NULL DEFAULT '',
    priority    INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    labels      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(labels)),
    open_deps   INTEGER NOT NULL DEFAULT 0 CHECK (open_deps >= 0),
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_order ON tasks (section_id, priority, position, id, status);
CREATE INDEX tasks_position ON tasks (section_id, position);
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_title ON tasks (title);
CREATE INDEX tasks_ready ON tasks (section_id, priority, position, id) WHERE status = 'pending' AND open_deps = 0;
CREATE TABLE leases (
    fence         INTEGER PRIMARY KEY AUTOINCREMENT,
    lease_id      TEXT NOT NULL UNIQUE,
    key_hash      TEXT NOT NULL,
    resource_kind TEXT NOT NULL CHECK (resource_kind IN ('task', 'section', 'runner', 'session', 'job', 'item')),
    resource_id   TEXT NOT NULL,
    holder_kind   TEXT NOT NULL CHECK (holder_kind IN ('runner', 'agent', 'person')),
    holder_id     TEXT NOT NULL,
    process       TEXT CHECK (process IS NULL OR json_valid(process)),
    ttl_ms        INTEGER NOT NULL CHECK (ttl_ms > 0),
    acquired_at   INTEGER NOT NULL,
    heartbeat_at  INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    claimed_from  TEXT
                  CHECK (claimed_from IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    ended_at      INTEGER,
    end_reason    TEXT CHECK (end_reason IN ('released', 'completed', 'expired', 'holder_died', 'forced')),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) STRICT;
CREATE UNIQUE INDEX leases_open ON leases (resource_kind, resource_id) WHERE ended_at IS NULL;
CREATE INDEX leases_history ON leases (resource_kind, resource_id, fence);
CREATE INDEX leases_expiry ON leases (resource_kind, expires_at) WHERE ended_at IS NULL;
CREATE INDEX leases_holder ON leases (holder_id) WHERE ended_at IS NULL;
CREATE INDEX leases_process ON leases (process) WHERE ended_at IS NULL AND process IS NOT NULL;
CREATE TABLE agents (
    id           TEXT PRIMARY KEY,
    capabilities TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(capabilities)),
    joined_at    INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT;
CREATE TABLE event_kinds (kind TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO event_kinds VALUES ('lease.acquired'), ('task.status');
CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    kind        TEXT NOT NULL REFERENCES event_kinds (kind),
    actor       TEXT NOT NULL,
    task_id     TEXT,
    from_status TEXT CHECK (from_status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    to_status   TEXT CHECK (to_status IN ('pending', 'in_progress', 'review', 'completed', 'failed', 'skipped')),
    fence       INTEGER,
    detail      TEXT CHECK (detail IS NULL OR json_valid(detail))
) STRICT;
CREATE INDEX events_task ON events (task_id, seq);
";

pub(super) struct RawClaims {
    connection: Connection,
}

impl RawClaims {
    /// A new database with the tasks of [`Fixture::add_tasks`](super::fixture::Fixture::add_tasks), all of them pending.
    pub(super) fn create(path: &Path, tasks: usize) -> Result<Self> {
        let create = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.execute_batch(TABLES)?;
            connection.execute_batch("BEGIN")?;
            for number in 1..=tasks {
                connection
                    .prepare_cached(
                        "INSERT INTO tasks (id, key, title, status, priority, position, created_at, updated_at)
                         VALUES (?1, ?2, ?3, 'pending', 100, ?4, 0, 0)",
                    )?
                    .execute(params![
                        task_id(number).as_str(),
                        task_key(number),
                        task_title(number),
                        task_position(number)
                    ])?;
            }
            connection.execute_batch("COMMIT")?;
            Ok(connection)
        };
        Ok(Self { connection: create().map_err(Error::bench)? })
    }

    /// Writes what a claim of this task writes, in one transaction. `number` makes the lease's id unique.
    pub(super) fn claim(&self, key: &str, number: usize) -> Result<()> {
        self.write_claim(key, number).map_err(Error::bench)
    }

    fn write_claim(&self, key: &str, number: usize) -> rusqlite::Result<()> {
        let execute = |sql: &str, values: &[&dyn ToSql]| {
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map(drop)
        };
        execute("BEGIN IMMEDIATE", &[])?;
        let id: String = self
            .connection
            .prepare_cached("SELECT id FROM tasks WHERE key = ?1")?
            .query_row([key], |row| row.get(0))?;
        execute(
            "INSERT INTO leases (lease_id, key_hash, resource_kind, resource_id, holder_kind, holder_id, ttl_ms,
                                 acquired_at, heartbeat_at, expires_at, claimed_from)
             VALUES (?1, '0123456789abcdef0123456789abcdef', 'task', ?2, 'agent', 'raw', 900000, 1794768000000, 1794768000000, 1794768900000, 'pending')",
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
