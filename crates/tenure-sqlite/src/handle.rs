//! The connection to a database, and what becomes of it and of the database's log when it is dropped.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Mutex;

use rusqlite::Connection;
use tenure_core::Result;

use crate::log::Log;
use crate::open_mark::OpenMark;

/// A connection that can be left open at the end of the process. Closing it frees all that SQLite has built from the
/// schema, which costs a short process more time than anything else at its end, and the end of the process frees it
/// anyway.
pub(crate) struct Handle {
    conn: Option<Connection>,
    ends_with_process: Cell<bool>,
    /// `None` if it only reads, and leaves the log to others.
    log: Option<(Log, OpenMark)>,
}

/// A connection whose log is moved into the database when the process ends.
struct LeftOpen {
    conn: Connection,
    log: Log,
    mark: OpenMark,
}

static LEFT_OPEN: Mutex<Vec<LeftOpen>> = Mutex::new(Vec::new());

/// Moves the logs of the databases that were left open into their files
/// ([`EndsWithProcess`](tenure_core::store::StoreHint::EndsWithProcess)). To be called at the end of the process, after it has
/// printed its answer.
pub fn close_left_open() {
    let left = LEFT_OPEN.lock().map(|mut left| std::mem::take(&mut *left)).unwrap_or_default();
    for LeftOpen { conn, log, mark } in left {
        log.move_into_database(&conn, &mark, true);
        std::mem::forget(conn);
    }
}

impl Handle {
    pub(crate) fn new(conn: Connection, log: Option<(Log, OpenMark)>) -> Self {
        Self { conn: Some(conn), ends_with_process: Cell::new(false), log }
    }

    /// Returns when all that was committed so far is on the disk.
    pub(crate) fn sync_log(&self) -> Result<()> {
        self.log.as_ref().map_or(Ok(()), |(log, _)| log.sync())
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
        let Some((log, mark)) = self.log.take() else { return drop(conn) };
        // The mark is removed before the log is checked: a process that writes after the check finds no mark of this one,
        // and moves the log itself.
        mark.remove();
        if !self.ends_with_process.get() {
            log.move_into_database(&conn, &mark, false);
        } else if let (false, Ok(mut left)) = (log.is_empty(), LEFT_OPEN.lock()) {
            left.push(LeftOpen { conn, log, mark });
        } else {
            std::mem::forget(conn);
        }
    }
}
