//! Which store a database file is, and whether it is a copy of another.
//!
//! A copy of a file has the same id and another home. The processes recorded in a copy belong to the original. If the
//! copy was made in this boot, they may be alive, so the copy is refused until it is adopted. If the store was last
//! changed in another boot or on another machine, none of them can be alive, and the next change makes the file its own
//! home, under a new id.

use std::path::Path;

use rusqlite::Connection;
use tenure_core::clock::SinceBoot;
use tenure_core::id::{Ids, RandomIds, StoreId};
use tenure_core::{Clock, Error, Result, Timestamp};

use crate::error::{io_error, sql_error};
use crate::sys;

/// The row `identity`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: StoreId,
    home: Option<String>,
    boot: Option<String>,
    clock: Option<StoreClock>,
    /// The clock is not stored yet.
    provisional: bool,
}

/// The store's clock: `base` plus the milliseconds since a boot. A step of the wall clock does not change it, and neither
/// does the wrong wall clock of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StoreClock {
    boot: String,
    base: i64,
}

/// The boot that an identity is judged in.
pub(crate) struct Boot {
    pub(crate) id: String,
    /// Whether the time since the boot is known.
    pub(crate) has_clock: bool,
}

/// Smaller differences between the wall clock and the store's are ignored, so that a stored time is shown the same by every
/// command: the two clocks cannot be read at the same instant.
const TOLERANCE_MS: i64 = 50;

/// How the stored identity relates to the file that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeCheck {
    /// The store is at home and was changed in this boot.
    Settled,
    /// The next change writes the identity.
    Unsettled,
    /// A copy of a store that was in use in this boot.
    Copied,
}

impl Identity {
    pub(crate) fn read(conn: &Connection) -> Result<Self> {
        let read = conn.query_row("SELECT store_id, home, boot, clock_base FROM identity", [], |row| {
            let (boot, base): (Option<String>, Option<i64>) = (row.get(2)?, row.get(3)?);
            let clock = boot.clone().zip(base).map(|(boot, base)| StoreClock { boot, base });
            Ok(Self {
                id: StoreId::new(row.get::<_, String>(0)?),
                home: row.get(1)?,
                boot,
                clock,
                provisional: false,
            })
        });
        let identity = read.map_err(|e| sql_error(&e))?;
        Ok(Self { id: StoreId::stored(identity.id.as_str())?, ..identity })
    }

    /// Evaluates the identity for a file at `home` in this `boot`.
    pub(crate) fn check_home(&self, home: &str, boot: &Boot) -> HomeCheck {
        let same_boot = self.boot.as_deref() == Some(boot.id.as_str());
        let has_clock = !self.provisional && (self.clock.is_some() || !boot.has_clock);
        match &self.home {
            Some(known) if known == home && same_boot && has_clock => HomeCheck::Settled,
            Some(known) if known != home && same_boot => HomeCheck::Copied,
            _ => HomeCheck::Unsettled,
        }
    }

    /// The identity after a change by a file at `home` in this `boot`. A file that is not at home gets a new id.
    pub(crate) fn settled(&self, home: &str, boot: &str) -> Self {
        let moved = self.home.as_ref().is_some_and(|known| known != home);
        let id = if moved { RandomIds.store() } else { self.id.clone() };
        let clock = self.clock.clone().filter(|clock| clock.boot == boot);
        Self { id, home: Some(home.to_owned()), boot: Some(boot.to_owned()), clock, provisional: false }
    }

    /// The identity with a clock for this boot. A clock that was set in another boot does not count. The first process
    /// to set it starts it at the wall time, but not before the last heartbeat of an open lease, so that no lease
    /// outlasts its ttl.
    pub(crate) fn with_clock(mut self, conn: &Connection, clock: &dyn Clock) -> Result<Self> {
        let Some(now) = clock.since_boot() else { return Ok(self) };
        if self.clock.as_ref().is_some_and(|known| known.boot == now.boot) {
            return Ok(self);
        }
        let last: Option<i64> = conn
            .query_row("SELECT max(heartbeat_at) FROM leases WHERE ended_at IS NULL", [], |row| row.get(0))
            .map_err(|e| sql_error(&e))?;
        let begin = clock.now().as_millis().max(last.unwrap_or(i64::MIN));
        self.clock = Some(StoreClock { boot: now.boot, base: begin.saturating_sub(now.millis) });
        self.provisional = true;
        Ok(self)
    }

    /// By how many milliseconds the wall clock, at `wall`, is ahead of the store's clock.
    pub(crate) fn ahead(&self, wall: Timestamp, now: Option<&SinceBoot>) -> i64 {
        let (Some(clock), Some(now)) = (&self.clock, now) else { return 0 };
        if clock.boot != now.boot {
            return 0;
        }
        let ahead = wall.as_millis().saturating_sub(clock.base.saturating_add(now.millis));
        if ahead.abs() < TOLERANCE_MS { 0 } else { ahead }
    }

    pub(crate) fn write(mut self, conn: &Connection) -> Result<Self> {
        conn.execute(
            "UPDATE identity SET store_id = ?1, home = ?2, boot = ?3, clock_base = ?4",
            (self.id.as_str(), &self.home, &self.boot, self.clock.as_ref().map(|clock| clock.base)),
        )
        .map_err(|e| sql_error(&e))?;
        self.provisional = false;
        Ok(self)
    }
}

/// Where a file is: its file system, inode and birth time. Moving the file within its file system keeps all three;
/// copying it does not.
pub(crate) fn home_of(path: &Path) -> Result<String> {
    sys::home_of(path).map_err(|e| io_error(&e, "inspect", path))
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
