//! The connection to a database, and what becomes of it and of the database's log when it is dropped.

use std::cell::Cell;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::Connection;

use crate::gate::Gate;
use crate::open_mark::OpenMark;

/// A connection that can be left open at the end of the process. Closing it frees all that SQLite has built from the
/// schema, which costs a short process more time than anything else at its end, and the end of the process frees it
/// anyway.
pub(crate) struct Handle {
    conn: Option<Connection>,
    database: PathBuf,
    ends_with_process: Cell<bool>,
    /// `None` if it only reads, and leaves the log to others.
    mark: Option<OpenMark>,
}

/// A connection whose log is moved into the database when the process ends.
struct LeftOpen {
    conn: Connection,
    database: PathBuf,
    mark: OpenMark,
}

static LEFT_OPEN: Mutex<Vec<LeftOpen>> = Mutex::new(Vec::new());

/// Moves the logs of the databases that were left open into their files
/// ([`EndsWithProcess`](tenure_core::store::StoreHint::EndsWithProcess)). To be called at the end of the process, after it has
/// printed its answer.
pub fn close_left_open() {
    let left = LEFT_OPEN.lock().map(|mut left| std::mem::take(&mut *left)).unwrap_or_default();
    for LeftOpen { conn, database, mark } in left {
        move_log(&conn, &database, &mark);
        std::mem::forget(conn);
    }
}

/// How many times the last process moves the log. A process that ends meanwhile leaves its changes in the log to the
/// last one.
const MOVES: usize = 3;

/// Moves the log into the database if no other process has it open, so that after the last process has ended the file is
/// complete without it. The log stays as an empty file: in a folder that cannot be written, SQLite can read only a database
/// that has one. A process that has the gate, or waits for it, does the same when it ends.
fn move_log(conn: &Connection, database: &Path, mark: &OpenMark) {
    for _ in 0..MOVES {
        if !has_log(database) {
            return;
        }
        let Some(_last) = mark.leave() else { return };
        let Some(_pass) = Gate::beside(database).try_enter() else { return };
        // A process that is reading now may keep the log from being emptied. Then that process moves the log when it
        // ends.
        let _ = conn.busy_timeout(Duration::ZERO);
        let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// Whether a part of the database is in the log beside it.
fn has_log(database: &Path) -> bool {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|found| found.len() > 0)
}

impl Handle {
    pub(crate) fn new(conn: Connection, database: &Path, mark: Option<OpenMark>) -> Self {
        let ends_with_process = Cell::new(false);
        Self { conn: Some(conn), database: database.to_owned(), ends_with_process, mark }
    }

    /// The process ends soon after this is dropped, so the connection is not closed.
    pub(crate) fn leave_open(&self) {
        self.ends_with_process.set(true);
    }
}

impl Deref for Handle {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.conn {
            Some(conn) => conn,
            None => unreachable!("only dropping takes it"),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        let Some(mark) = self.mark.take() else { return drop(conn) };
        // The mark is removed before the log is checked: a process that writes after the check finds no mark of this one,
        // and moves the log itself.
        mark.remove();
        if !self.ends_with_process.get() {
            move_log(&conn, &self.database, &mark);
        } else if let (true, Ok(mut left)) = (has_log(&self.database), LEFT_OPEN.lock()) {
            left.push(LeftOpen { conn, database: self.database.clone(), mark });
        } else {
            std::mem::forget(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::store::{Durability, Store};

    use super::*;
    use crate::{OpenOptions, SqliteStore};

    #[test]
    fn the_log_is_moved_by_the_last_one_to_close_the_database_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let open = || SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        let (first, second) = (open(), open());
        let store: &dyn Store = &first;
        store.write(Durability::Power, |tx| tx.take_task_number().map(drop)).unwrap();
        drop(first);
        assert!(has_log(&path), "the other one may write more");
        drop(second);
        assert!(!has_log(&path), "the file is complete");
    }
}
