//! Which store a database file is.

use rusqlite::Connection;
use tenure_core::Result;
use tenure_core::id::StoreId;

use crate::error::sql_error;

pub(crate) fn store_id(conn: &Connection) -> Result<StoreId> {
    conn.query_row("SELECT store_id FROM identity", [], |row| row.get::<_, String>(0))
        .map(StoreId::new)
        .map_err(|e| sql_error(&e))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_core::SystemClock;
    use tenure_core::store::Store;

    use crate::{OpenOptions, SqliteStore};

    #[test]
    fn every_handle_reads_the_same_id() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenure.db");
        let options = || OpenOptions::new(Arc::new(SystemClock));
        let made = SqliteStore::create(&path, options()).unwrap().id().unwrap();
        assert_eq!(SqliteStore::open(&path, options()).unwrap().id().unwrap(), made);
    }
}
