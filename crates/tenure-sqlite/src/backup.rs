//! Backups of the database, and what to do with a damaged one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, OpenFlags};
use tenure_core::store::Store;
use tenure_core::{Error, Result};

use crate::connection::{SqliteStore, make_private};
use crate::error::{io_error, sql_error};
use crate::gate::Gate;

impl SqliteStore {
    /// Writes a copy of the whole database, as of one moment, to a new file. Other processes may read and write
    /// meanwhile.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        let serving: &dyn Store = self;
        serving.read(|_| Ok(()))?;
        make_private(to)?;
        let name = to.to_str().ok_or_else(|| {
            Error::invalid(format!("the name of the backup is not valid UTF-8: {}", to.display()))
        })?;
        self.connection().execute("VACUUM INTO ?1", [name]).map(drop).map_err(|e| sql_error(&e))
    }

    /// Closes the store, and leaves a file that is complete without any file beside it.
    pub fn close_as_one_file(self) -> Result<()> {
        self.connection().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).map_err(|e| sql_error(&e))
    }
}

/// Whether the file exists and cannot be used as a database: it is damaged, truncated or not a database.
pub fn is_damaged(path: &Path) -> bool {
    let check = || -> rusqlite::Result<bool> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        let version: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let found: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok(version == 0 || found != "ok")
    };
    let damaged = |code| matches!(code, ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt);
    path.is_file() && check().unwrap_or_else(|error| error.sqlite_error_code().is_some_and(damaged))
}

/// Renames a damaged database and the files that SQLite keeps beside it. Returns the new name.
pub fn set_aside(path: &Path, patience: Duration) -> Result<PathBuf> {
    let _pass = Gate::beside(path).enter(patience)?;
    let with = |path: &Path, more: &str| {
        let mut name = OsString::from(path);
        name.push(more);
        PathBuf::from(name)
    };
    let names = std::iter::once(".damaged".to_owned()).chain((2..).map(|n| format!(".damaged-{n}")));
    let aside = names.map(|name| with(path, &name)).find(|aside| aside.symlink_metadata().is_err());
    let aside = aside.unwrap_or_else(|| with(path, ".damaged"));
    // The log goes first: beside another database it would be applied to that one.
    for more in ["-wal", "-shm", ""] {
        match std::fs::rename(with(path, more), with(&aside, more)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error(&e, "rename", &with(path, more)));
            }
            _ => {}
        }
    }
    Ok(aside)
}
