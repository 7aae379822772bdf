//! The write-ahead log beside a database, and how the last process empties it.
//!
//! An empty log is a file without bytes, or one whose header is zero: SQLite ignores everything behind a header that is not valid. The
//! second kind keeps its blocks on the disk, so the next commits overwrite them, which a disk finishes in a third of the time that
//! it needs to extend a file.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::error::Advice;
use tenure_core::{Error, Result};
use tenure_lock::{FileId, KnownFile, Presence};

use crate::gate::Gate;
use crate::open_mark::OpenMark;
use crate::sys;

/// A log that is longer gives its blocks back when it is emptied. That of a single command is a tenth of it.
const KEPT: u64 = 1 << 20;

/// The header of an empty log.
const HEADER: [u8; 32] = [0; 32];

/// How many times the last process moves the log. A process that ends meanwhile leaves its changes in the log to the
/// last one.
const MOVES: usize = 3;

/// The log of a database that this process has open.
#[derive(Debug)]
pub(crate) struct Log {
    database: KnownFile,
    path: PathBuf,
    /// `None` if the system does not identify the log, or there is none: a copy that SQLite has made uses no log.
    id: Option<FileId>,
    /// Opened when it is first needed, which is never in a process that only reads.
    file: OnceCell<File>,
}

impl Log {
    /// The log of a database that SQLite has opened and read.
    pub(crate) fn of(database: &KnownFile) -> Self {
        let path = beside(database.path(), "-wal");
        Self { database: database.clone(), id: FileId::behind(&path).ok(), path, file: OnceCell::new() }
    }

    /// Leaves the syncing of commits to [`Log::sync`], so that the next writer need not wait for it. Without a log, SQLite syncs.
    pub(crate) fn sync_later(&self, conn: &Connection) -> rusqlite::Result<()> {
        if self.id.is_some() { conn.execute_batch("PRAGMA synchronous = NORMAL") } else { Ok(()) }
    }

    /// Returns when everything that was committed so far is on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.id.is_none() {
            return Ok(());
        }
        self.file().and_then(File::sync_data).map_err(|error| Error::Store {
            message: format!("cannot sync {}: {error}", self.path.display()),
            advice: Advice::note("the change was made, but a power failure may undo it; check the disk"),
        })
    }

    /// The log that SQLite has open. SQLite locks the database and the shared memory, not the log, so closing a second descriptor of
    /// it drops no lock.
    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::options().write(true).open(&self.path)?;
        if FileId::of(&file)? != self.id {
            return Err(io::Error::other("it was replaced"));
        }
        Ok(self.file.get_or_init(|| file))
    }

    pub(crate) fn is_empty(&self) -> bool {
        is_empty(&self.path)
    }

    /// Moves the log into the database if no other process has it open, so that after the last process has ended the file is
    /// complete without it. The log stays as an empty file: in a folder that cannot be written, SQLite can read only a database
    /// that has one. A process that has the gate, or waits for it, does the same when it ends.
    ///
    /// With `ends_with_process`, the process ends without closing a file of this database.
    pub(crate) fn move_into_database(&self, conn: &Connection, mark: &OpenMark, ends_with_process: bool) {
        for _ in 0..MOVES {
            if self.is_empty() {
                return;
            }
            let Some(_last) = mark.leave() else { return };
            let Some(_pass) = Gate::beside(self.database.path()).try_enter() else { return };
            // A process that is reading now may keep the log from being emptied. Then that process moves the log when it
            // ends.
            let _ = conn.busy_timeout(Duration::ZERO);
            if ends_with_process && self.empty_in_place(conn).unwrap_or(false) {
                continue;
            }
            let _ = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// Moves the log into the database and clears its header. False if the log was left as it is.
    ///
    /// A cleared header loses what other connections append to the log, so there must be none that could: SQLite's write lock is
    /// held, nothing was committed since the log was moved, and no other connection has the database open. A connection that is
    /// opened afterwards, while this one is still open, finds in the shared memory that all of the log was moved, so it begins the
    /// log anew with a new header.
    fn empty_in_place(&self, conn: &Connection) -> rusqlite::Result<bool> {
        let Ok(mut log) = self.file() else { return Ok(false) };
        let short = log.metadata().is_ok_and(|found| found.len() <= KEPT);
        if self.id.is_none() || !short || self.database.presence() != Presence::InPlace {
            return Ok(false);
        }
        let mut version = conn.prepare_cached("PRAGMA data_version")?;
        let mut version = || version.query_row([], |row| row.get::<_, i64>(0));
        let before = version()?;
        let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok(row.get::<_, i64>(0)? == 0 && row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        })?;
        if !moved {
            return Ok(false);
        }
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let alone = version()? == before && sys::is_open_here_only(&beside(self.database.path(), "-shm"));
        let emptied = alone && log.rewind().is_ok() && log.write_all(&HEADER).is_ok();
        conn.prepare_cached("ROLLBACK")?.execute([])?;
        Ok(emptied)
    }
}

/// Whether SQLite finds nothing in this log.
fn is_empty(log: &Path) -> bool {
    let mut header = HEADER;
    let read = File::open(log).and_then(|mut file| file.read_exact(&mut header));
    read.is_err() || header == HEADER
}

/// Syncs the folder of a database whose log is new, so that a power failure cannot remove the log's name after a commit. SQLite is
/// compiled to leave that to its caller, because it would do so once in every process.
pub(crate) fn keep_name(database: &Path) {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Some file systems cannot sync a folder.
    let _ = sys::sync_folder(folder.unwrap_or(Path::new(".")));
}

/// Whether the log has never been written to, or was truncated.
pub(crate) fn is_new(database: &Path) -> bool {
    std::fs::metadata(beside(database, "-wal")).map_or(true, |found| found.len() == 0)
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::store::{Durability, Store, StoreHint};

    use super::*;
    use crate::{OpenOptions, SqliteStore, close_left_open};

    fn open(path: &Path) -> SqliteStore {
        SqliteStore::create(path, OpenOptions::new(Arc::new(SystemClock))).unwrap()
    }

    /// Draws the number of the next task in a synced commit.
    fn draw(store: &dyn Store) -> i64 {
        store.write(Durability::Power, |tx| tx.take_task_number()).unwrap()
    }

    /// Draws a number as a command does that exits afterwards.
    fn draw_and_exit(path: &Path) -> i64 {
        let store = open(path);
        let store: &dyn Store = &store;
        store.hint(StoreHint::EndsWithProcess);
        draw(store)
    }

    /// What another computer finds in a copy of these files.
    fn drawn_in_a_copy(path: &Path, endings: &[&str]) -> i64 {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.db");
        for ending in endings {
            std::fs::copy(beside(path, ending), beside(&copy, ending)).unwrap();
        }
        let conn = Connection::open(&copy).unwrap();
        conn.query_row("SELECT value - 1 FROM meta WHERE name = 'next_task_number'", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn the_log_is_moved_by_the_last_one_to_close_the_database_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let (first, second) = (open(&path), open(&path));
        draw(&first);
        drop(first);
        assert!(!is_empty(&beside(&path, "-wal")), "the other one may write more");
        drop(second);
        assert!(is_empty(&beside(&path, "-wal")), "the file is complete");
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_ends_empties_the_log_and_keeps_its_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let log = beside(&path, "-wal");
        drop(open(&path));
        for _ in 0..3 {
            let drawn = draw_and_exit(&path);
            close_left_open();
            assert!(is_empty(&log) && !is_new(&path));
            assert_eq!(drawn_in_a_copy(&path, &[""]), drawn, "a plain copy is complete");
            assert_eq!(drawn_in_a_copy(&path, &["", "-wal"]), drawn, "the old log is not applied");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_connection_that_is_opened_at_the_end_of_the_last_process_begins_the_log_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        draw_and_exit(&path);
        // Leaves the connection open, so the next one finds the shared memory as it is.
        close_left_open();
        let next = open(&path);
        let drawn = draw(&next);
        assert_eq!(drawn_in_a_copy(&path, &["", "-wal"]), drawn, "as after a power failure");
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_another_program_has_open_is_emptied_by_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        draw_and_exit(&path);
        close_left_open();
        assert!(!is_new(&path));
        let program = std::env::current_exe().unwrap();
        let mut other = std::process::Command::new(program)
            .args(["--exact", "log::tests::opens_a_database_for_another_test", "--nocapture"])
            .env("TENURE_TEST_DATABASE", &path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = io::BufReader::new(other.stdout.take().unwrap());
        assert!(io::BufRead::lines(output).any(|line| line.unwrap().contains("it is open")));
        let drawn = draw_and_exit(&path);
        close_left_open();
        assert!(is_new(&path), "truncated");
        assert_eq!(drawn_in_a_copy(&path, &[""]), drawn);
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    /// Not a test by itself.
    #[test]
    fn opens_a_database_for_another_test() {
        let Some(path) = std::env::var_os("TENURE_TEST_DATABASE") else { return };
        let conn = Connection::open(path).unwrap();
        conn.query_row("SELECT count(*) FROM tasks", [], |_| Ok(())).unwrap();
        println!("it is open");
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_long_log_gives_its_blocks_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = open(&path);
        let large = "x".repeat(usize::try_from(KEPT).unwrap());
        store.connection().execute("UPDATE meta SET name = name || ?1", [large]).unwrap();
        let as_store: &dyn Store = &store;
        as_store.hint(StoreHint::EndsWithProcess);
        drop(store);
        close_left_open();
        assert!(is_new(&path));
    }

    #[cfg(unix)]
    #[test]
    fn the_log_of_another_database_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let log = beside(&path, "-wal");
        draw_and_exit(&path);
        std::fs::rename(&log, folder.path().join("old")).unwrap();
        let other = b"the log of another database".repeat(10);
        std::fs::write(&log, &other).unwrap();
        close_left_open();
        assert_eq!(std::fs::read(&log).unwrap(), other);
    }
}
