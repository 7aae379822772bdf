//! Opening the database, and running one transaction.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ToSql};
use tenure_core::id::StoreId;
use tenure_core::store::{
    Defect, Dialect, Durability, Store, StoreHint, Tx, TxState, View, grant_statements,
};
use tenure_core::{Clock, Error, Result};
use tenure_lock::{KnownFile, Presence};

use crate::doorbell;
use crate::error::{cannot_open, io_error, sql_error, unreadable};
use crate::filesystem;
use crate::gate::Gate;
use crate::handle::Handle;
use crate::identity::{self, Boot, HomeCheck, Identity};
use crate::integrity;
use crate::log::{self, Log};
use crate::migrate;
use crate::open_mark::OpenMark;
use crate::rows::SET_STATUS;
use crate::sys;

#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub clock: Arc<dyn Clock>,
    /// How long to wait for a turn to write.
    pub patience: Duration,
    /// Every transaction is run and then rolled back.
    pub dry_run: bool,
    /// Nothing is written: an older schema is refused instead of migrated, and the log stays as it is.
    pub read_only: bool,
    /// Called with a sentence for the user when a turn to write takes longer than a second.
    pub on_wait: Option<fn(&str)>,
}

impl OpenOptions {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, patience: Duration::from_secs(10), dry_run: false, read_only: false, on_wait: None }
    }
}

pub struct SqliteStore {
    conn: Handle,
    path: PathBuf,
    gate: Gate,
    options: OpenOptions,
    kind: filesystem::Kind,
    file: KnownFile,
    home: String,
    identity: RefCell<Identity>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens an existing database.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self> {
        Self::open_settled(path, options, OpenFlags::empty())
    }

    /// Opens a database, and creates it if it does not exist. Several processes may do so at once.
    pub fn create(path: &Path, options: OpenOptions) -> Result<Self> {
        make_private(path)?;
        Self::open_settled(path, options, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens the file that the path leads to. On an overlay file system, the first opening for writing replaces a file of a
    /// lower layer, so a file that was replaced meanwhile is opened once more.
    fn open_settled(path: &Path, options: OpenOptions, extra: OpenFlags) -> Result<Self> {
        let store = Self::open_with(path, options.clone(), extra)?;
        match store.check_in_place() {
            Ok(()) => Ok(store),
            Err(_) => Self::open_with(path, options, extra),
        }
    }

    fn open_with(path: &Path, options: OpenOptions, extra: OpenFlags) -> Result<Self> {
        check_readable(path, extra.contains(OpenFlags::SQLITE_OPEN_CREATE))?;
        let file = KnownFile::at(path).map_err(|e| io_error(&e, "inspect", path))?;
        // SQLite opens the log when it first reads. If the file was replaced before that, it fails for a reason that does not tell.
        Self::open_file(&file, options, extra).map_err(|error| in_place(&file).err().unwrap_or(error))
    }

    fn open_file(file: &KnownFile, options: OpenOptions, extra: OpenFlags) -> Result<Self> {
        let path = file.path();
        let kind = filesystem::check(path.parent().unwrap_or(path))?;
        let home = identity::home_of(path)?;
        let access = if options.read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra;
        // With NOFOLLOW, SQLite accepts no symbolic link in any part of the path. Links in the folder are up to the
        // caller, so they are resolved first.
        let real = real_folder(path)?;
        let has_new_log = !options.read_only && log::is_new(path);
        let conn = Connection::open_with_flags(&real, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)
            .map_err(|e| cannot_open(&e, path))?;
        distrust(&conn)?;
        // The log is moved into the database by `Handle`, which keeps the files.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(|e| sql_error(&e))?;
        // Plans must not depend on bound values. Otherwise every statement would be planned a second time when values
        // are bound.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(|e| sql_error(&e))?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true).map_err(|e| sql_error(&e))?;
        conn.set_prepared_statement_cache_capacity(64);
        if let Some(pragmas) = sys::FULL_SYNC {
            conn.execute_batch(pragmas).map_err(|e| sql_error(&e))?;
        }
        let gate = Gate::beside(path).on_wait(options.on_wait);
        let version = migrate::version(&conn)?;
        if version == 0 && !extra.contains(OpenFlags::SQLITE_OPEN_CREATE) {
            migrate::refuse_empty(&conn)?;
        }
        if version < migrate::LATEST && options.read_only {
            return Err(Error::store(
                "the database has an older schema; to migrate it, run a command that writes",
            ));
        }
        if has_new_log && version > 0 {
            log::keep_name(path);
        }
        if version < migrate::LATEST {
            migrate::migrate(&conn, &gate)?;
        }
        conn.busy_timeout(options.patience).map_err(|e| sql_error(&e))?;
        let identity = Identity::read(&conn)?.with_clock(&conn, options.clock.as_ref())?;
        let identity = RefCell::new(identity);
        let log = (!options.read_only).then(|| (Log::of(file), OpenMark::set(path)));
        if let Some((log, _)) = &log {
            log.sync_later(&conn).map_err(|e| sql_error(&e))?;
        }
        let conn = Handle::new(conn, log);
        Ok(Self { conn, path: path.to_owned(), gate, options, kind, file: file.clone(), home, identity })
    }

    /// Whether the file system is FUSE. Whether locks work there depends on what is behind it, so this is worth a
    /// warning.
    pub fn is_on_fuse(&self) -> bool {
        self.kind == filesystem::Kind::Fuse
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prepares the statements of a grant, so that a waiter need not do it while it has its turn.
    fn prepare_grant(&self) {
        let shared = grant_statements(Dialect::Sqlite).unwrap_or_default();
        for sql in shared.iter().map(String::as_str).chain([SET_STATUS]) {
            // A statement that cannot be prepared fails when it is run.
            drop(self.conn.prepare_cached(sql));
        }
    }

    fn transaction(&self, identity: &Identity) -> Transaction<'_> {
        let now = self.options.clock.now();
        let ahead = identity.ahead(now, self.options.clock.since_boot().as_ref());
        Transaction { conn: &self.conn, state: TxState::new(now), ahead }
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.conn.prepare_cached(sql).and_then(|mut s| s.execute([])).map(drop).map_err(|e| sql_error(&e))
    }
}

impl Store for SqliteStore {
    fn id(&self) -> Result<StoreId> {
        Ok(self.identity.borrow().id.clone())
    }

    fn read_with(&self, body: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        self.check_in_place()?;
        self.run("BEGIN")?;
        let tx = self.transaction(&self.identity.borrow());
        let outcome = migrate::check_serving(&self.conn).and_then(|()| body(&tx));
        let ended = self.run("ROLLBACK");
        // After some errors SQLite has already rolled back, so this fails. The first error is the one to report.
        outcome.and(ended).map_err(|error| unreadable(error, &self.path))
    }

    fn write_with(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>,
    ) -> Result<()> {
        self.inside(durability, &mut |tx| body(tx))
    }

    fn hint(&self, hint: StoreHint) {
        match hint {
            StoreHint::EndsWithProcess => self.conn.leave_open(),
            StoreHint::GrantExpected => self.prepare_grant(),
            StoreHint::Sleeps => {}
        }
    }

    fn check(&self, mend: bool) -> Result<Vec<Defect>> {
        if mend {
            self.inside(Durability::Power, &mut |tx| {
                integrity::count_all(tx.conn).map_err(|e| sql_error(&e))
            })?;
        }
        integrity::check(&self.conn)
    }
}

impl SqliteStore {
    /// Whether this is a copy of another store that was in use in this boot. Until it is adopted it can only be read.
    pub fn is_copy(&self) -> bool {
        self.identity.borrow().check_home(&self.home, &self.boot()) == HomeCheck::Copied
    }

    /// Makes this file the store's home, under a new id, in one transaction with `body`.
    pub fn adopt(&self, body: &mut dyn FnMut(&mut dyn Tx) -> Result<()>) -> Result<()> {
        self.transact(Durability::Power, true, &mut |tx| body(tx))
    }

    fn boot(&self) -> Boot {
        match self.options.clock.since_boot() {
            Some(now) => Boot { id: now.boot, has_clock: true },
            None => Boot { id: tenure_lock::boot_id(), has_clock: false },
        }
    }

    /// Refuses to continue with a file that was deleted or replaced, because changes to it would be lost.
    fn check_in_place(&self) -> Result<()> {
        in_place(&self.file)
    }

    /// Records the home and the boot in which the store is changed, if they are new. Returns the identity to remember
    /// after the commit.
    fn settle(&self, adopting: bool) -> Result<Option<Identity>> {
        let boot = self.boot();
        let check = |identity: &Identity| identity.check_home(&self.home, &boot);
        if check(&self.identity.borrow()) == HomeCheck::Settled {
            return Ok(None);
        }
        // Another process may have settled it since it was read.
        let found = Identity::read(&self.conn)?;
        match check(&found) {
            HomeCheck::Settled => return Ok(Some(found)),
            HomeCheck::Copied if !adopting => return Err(identity::copied(&self.path)),
            HomeCheck::Copied | HomeCheck::Unsettled => {}
        }
        let settled =
            found.settled(&self.home, &boot.id).with_clock(&self.conn, self.options.clock.as_ref())?;
        settled.write(&self.conn).map(Some)
    }

    /// One transaction whose body gets the SQLite type.
    fn inside(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        self.in_any_standing(durability, &mut |tx| {
            migrate::check_serving(tx.conn)?;
            body(tx)
        })
    }

    /// [`SqliteStore::inside`], also in a store that does not serve.
    pub(crate) fn in_any_standing(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        self.transact(durability, false, body)
    }

    fn transact(
        &self,
        durability: Durability,
        adopting: bool,
        body: &mut dyn FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let _span = tracing::debug_span!("write", ?durability).entered();
        let pass = self.gate.enter(self.options.patience)?;
        tracing::debug!("passed the gate");
        self.check_in_place()?;
        self.run("BEGIN IMMEDIATE")?;
        let outcome = self.settle(adopting).and_then(|settled| {
            let mut tx = self.transaction(settled.as_ref().unwrap_or(&self.identity.borrow()));
            body(&mut tx).map(|()| (settled, tx.state))
        });
        let (settled, state) = match outcome {
            Ok(done) if !self.options.dry_run => done,
            other => {
                // After some errors SQLite has already rolled back, so this fails. The first error is the one to
                // report.
                drop(self.run("ROLLBACK"));
                return other.map(drop).map_err(|error| unreadable(error, &self.path));
            }
        };
        if let Err(error) = self.run("COMMIT") {
            drop(self.run("ROLLBACK"));
            return Err(error);
        }
        drop(pass);
        if let Some(settled) = settled {
            *self.identity.borrow_mut() = settled;
        }
        tracing::debug!(rings = state.rings.len(), "committed");
        doorbell::ring_all(&state.rings);
        if durability == Durability::Process || state.skips_sync {
            return Ok(());
        }
        // Also if nothing was written, because the answer may depend on a commit whose process was killed before it synced
        // the log.
        self.conn.sync_log()
    }
}

/// A running transaction.
pub(crate) struct Transaction<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) state: TxState,
    /// By how many milliseconds the wall clock is ahead of the store's clock.
    pub(crate) ahead: i64,
}

impl Transaction<'_> {
    /// Runs a statement that returns no rows, and returns how many it changed.
    pub(crate) fn change(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize> {
        self.conn.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(|e| sql_error(&e))
    }
}

/// An error if the file was deleted or replaced.
fn in_place(file: &KnownFile) -> Result<()> {
    match file.presence() {
        Presence::InPlace => Ok(()),
        lost => {
            Err(Error::StoreReplaced { path: file.path().to_owned(), deleted: lost == Presence::Deleted })
        }
    }
}

/// The path with all links in its folder resolved.
fn real_folder(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|e| io_error(&e, "open", folder))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Restricts what the database can do. The file may come from anybody, for example from the author of a repository, so
/// neither its schema nor a statement may reach beyond its rows.
fn distrust(conn: &Connection) -> Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(|e| sql_error(&e))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(|e| sql_error(&e)).map(drop)
}

fn check_readable(path: &Path, may_create: bool) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            Err(Error::store(format!("{} is a directory, not a database", path.display())))
        }
        // Checks the permission without opening the file: closing a second descriptor of it would drop SQLite's locks
        // in this process.
        Ok(_) => sys::check_readable(path).map_err(|e| io_error(&e, "read", path)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && may_create => Ok(()),
        Err(e) => Err(io_error(&e, "open", path)),
    }
}

/// Creates the file with a private mode before SQLite opens it: SQLite gives its side files the same mode. An existing
/// file is not opened, because closing it again would drop SQLite's locks on it in this process.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    match sys::make_private(&mut options).open(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(io_error(&e, "create", path)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::{Error, SystemClock};

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_database_behind_a_link_is_not_opened_and_its_schema_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let options = || OpenOptions::new(Arc::new(SystemClock));
        let store = SqliteStore::create(&path, options()).unwrap();
        let is_on = |config| store.conn.db_config(config).unwrap();
        assert!(is_on(DbConfig::SQLITE_DBCONFIG_DEFENSIVE));
        assert!(!is_on(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA));
        assert!(store.conn.execute_batch("PRAGMA writable_schema = 1; DELETE FROM sqlite_schema").is_err());
        std::fs::create_dir(folder.path().join("project")).unwrap();
        let link = folder.path().join("project/tenure.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(SqliteStore::open(&link, options()).is_err());
        let linked_folder = folder.path().join("linked");
        std::os::unix::fs::symlink(folder.path(), &linked_folder).unwrap();
        SqliteStore::open(&linked_folder.join("tenure.db"), options()).unwrap();
    }

    #[test]
    fn sqlite_syncs_the_commits_of_a_database_without_a_log_only() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("tenure.db"), folder.path().join("copy.db"));
        let store = SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        store.conn.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let copied = SqliteStore::open(&copy, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        let settings = |store: &SqliteStore| {
            let read =
                |name: &str| -> i64 { store.conn.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
            (read("synchronous"), read("foreign_keys"))
        };
        let (normal, full) = (1, 2);
        assert_eq!((settings(&store), settings(&copied)), ((normal, 1), (full, 1)));
        copied.adopt(&mut |_| Ok(())).unwrap();
    }

    #[test]
    fn the_first_error_of_a_read_is_reported_even_if_sqlite_has_already_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock))).unwrap();
        let error = store.read_with(&mut |_| {
            store.run("ROLLBACK")?;
            Err(Error::General("the first error".to_owned()))
        });
        assert_eq!(error.unwrap_err().to_string(), "the first error");
        store.read_with(&mut |_| Ok(())).unwrap();
    }
}
