//! Which store a database file is, and whether it is a copy of another.
//!
//! A copy of a file has the same id and another home. The processes recorded in a copy belong to the original. If the
//! copy was made in this boot, they may be alive, so the copy is refused until it is adopted. If the store was last
//! changed in another boot or on another machine, none of them can be alive, and the next change makes the file its own
//! home, under a new id.

use std::path::Path;

use rusqlite::Connection;
use tenure_core::id::{Ids, RandomIds, StoreId};
use tenure_core::{Error, Result};

use crate::error::{io_error, sql_error};

/// The row `identity`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: StoreId,
    home: Option<String>,
    boot: Option<String>,
}

/// How the stored identity relates to the file that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The store is at home and was changed in this boot.
    Settled,
    /// The next change writes the identity.
    Unsettled,
    /// A copy of a store that was in use in this boot.
    Copied,
}

impl Identity {
    pub(crate) fn read(conn: &Connection) -> Result<Self> {
        conn.query_row("SELECT store_id, home, boot FROM identity", [], |row| {
            Ok(Self { id: StoreId::new(row.get::<_, String>(0)?), home: row.get(1)?, boot: row.get(2)? })
        })
        .map_err(|e| sql_error(&e))
    }

    /// Judged for a file at `home` in this `boot`.
    pub(crate) fn standing(&self, home: &str, boot: &str) -> Standing {
        let same_boot = self.boot.as_deref() == Some(boot);
        match &self.home {
            Some(known) if known == home && same_boot => Standing::Settled,
            Some(known) if known != home && same_boot => Standing::Copied,
            _ => Standing::Unsettled,
        }
    }

    /// The identity after a change by a file at `home` in this `boot`. A file that is not at home gets a new id.
    pub(crate) fn settled(&self, home: &str, boot: &str) -> Self {
        let moved = self.home.as_ref().is_some_and(|known| known != home);
        let id = if moved { RandomIds.store() } else { self.id.clone() };
        Self { id, home: Some(home.to_owned()), boot: Some(boot.to_owned()) }
    }

    pub(crate) fn write(&self, conn: &Connection) -> Result<()> {
        conn.execute(
            "UPDATE identity SET store_id = ?1, home = ?2, boot = ?3",
            (self.id.as_str(), &self.home, &self.boot),
        )
        .map(drop)
        .map_err(|e| sql_error(&e))
    }
}

/// Where a file is: its file system, inode and birth time. Moving the file within its file system keeps all three;
/// copying it does not.
pub(crate) fn home_of(path: &Path) -> Result<String> {
    use std::os::unix::fs::MetadataExt;
    let failed = |e: &std::io::Error| io_error(e, "inspect", path);
    let found = std::fs::metadata(path).map_err(|e| failed(&e))?;
    let file_system = rustix::fs::statvfs(path).map_err(|e| failed(&e.into()))?.f_fsid;
    // Not every file system records it.
    let born = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(format!("{file_system:x}:{}:{}", found.ino(), born.map_or(0, |at| at.as_nanos())))
}

pub(crate) fn copied(path: &Path) -> Error {
    Error::StoreCopied { path: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::store::{Durability, Store};
    use tenure_core::{ErrorCode, SystemClock};

    use super::*;
    use crate::{OpenOptions, SqliteStore};

    fn options() -> OpenOptions {
        OpenOptions::new(Arc::new(SystemClock))
    }

    fn change(store: &dyn Store) -> Result<()> {
        store.write(Durability::Process, |tx| tx.take_task_number().map(drop))
    }

    fn in_boot(path: &Path, boot: &str) {
        Connection::open(path).unwrap().execute("UPDATE identity SET boot = ?1", [boot]).unwrap();
    }

    #[test]
    fn every_handle_reads_the_same_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let made = SqliteStore::create(&path, options()).unwrap().id().unwrap();
        let store = SqliteStore::open(&path, options()).unwrap();
        assert_eq!(store.id().unwrap(), made);
        change(&store).unwrap();
        assert_eq!((store.id().unwrap(), store.is_copy()), (made, false));
    }

    #[test]
    fn a_copy_is_refused_in_the_same_boot_and_becomes_a_store_of_its_own_in_another() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("tenure.db"), folder.path().join("copy.db"));
        let original = SqliteStore::create(&path, options()).unwrap();
        change(&original).unwrap();
        let id = original.id().unwrap();
        drop(original);
        Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let store = SqliteStore::open(&copy, options()).unwrap();
        assert!(store.is_copy());
        assert_eq!(change(&store).unwrap_err().code(), ErrorCode::StoreCopied);
        let read: &dyn Store = &store;
        assert!(read.read(|view| view.count_tasks()).unwrap().is_empty());
        drop(store);

        in_boot(&copy, "another");
        let store = SqliteStore::open(&copy, options()).unwrap();
        assert!(!store.is_copy());
        change(&store).unwrap();
        assert_ne!(store.id().unwrap(), id);
        assert_eq!(SqliteStore::open(&copy, options()).unwrap().id().unwrap(), store.id().unwrap());
    }

    #[test]
    fn a_moved_file_is_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("tenure.db"), folder.path().join("moved.db"));
        let store = SqliteStore::create(&path, options()).unwrap();
        change(&store).unwrap();
        let id = store.id().unwrap();
        drop(store);
        for suffix in ["", "-wal", "-shm"] {
            let named = |path: &Path| format!("{}{suffix}", path.display());
            let _ = std::fs::rename(named(&path), named(&moved));
        }
        let store = SqliteStore::open(&moved, options()).unwrap();
        change(&store).unwrap();
        assert_eq!((store.id().unwrap(), store.is_copy()), (id, false));
    }

    #[test]
    fn an_adopted_copy_has_an_id_of_its_own_and_can_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("tenure.db"), folder.path().join("copy.db"));
        let original = SqliteStore::create(&path, options()).unwrap();
        change(&original).unwrap();
        Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let store = SqliteStore::open(&copy, options()).unwrap();
        store.adopt(&mut |_| Ok(())).unwrap();
        assert!(!store.is_copy());
        assert_ne!(store.id().unwrap(), original.id().unwrap());
        change(&store).unwrap();
        change(&original).unwrap();
    }

    #[test]
    fn a_transaction_on_a_replaced_or_deleted_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let store = SqliteStore::create(&path, options()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let gone = |store: &dyn Store| {
            let lost = |error: Error| match error {
                Error::StoreReplaced { deleted, .. } => deleted,
                other => panic!("{other}"),
            };
            let read = lost(store.read(|view| view.count_tasks()).unwrap_err());
            assert_eq!(lost(change(store).unwrap_err()), read);
            read
        };
        assert!(gone(&store));
        drop(SqliteStore::create(&path, options()).unwrap());
        assert!(!gone(&store));
    }
}
