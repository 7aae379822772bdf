//! SQLite's check of its file, and a check of the counters that the store keeps.

use rusqlite::Connection;
use tenure_core::Result;
use tenure_core::store::{Defect, Dialect, stored_counts};

use crate::error::sql_error;

/// The most defects of each kind that are reported; the first few suffice for a badly damaged file.
const MOST: usize = 20;

pub(crate) fn check(conn: &Connection) -> Result<Vec<Defect>> {
    let damage = |what| Defect { what, mendable: false };
    let read = || -> rusqlite::Result<Vec<Defect>> {
        let mut found = Vec::new();
        let mut pages = conn.prepare(&format!("PRAGMA integrity_check({MOST})"))?;
        for line in pages.query_map([], |row| row.get::<_, String>(0))? {
            let line = line?;
            if line != "ok" {
                found.push(damage(format!("the database is damaged: {line}")));
            }
        }
        let mut keys = conn.prepare("PRAGMA foreign_key_check")?;
        let lost = keys.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?)))?;
        for row in lost.take(MOST) {
            let (table, parent) = row?;
            found.push(damage(format!("a row of {table} refers to a row of {parent} that is not there")));
        }
        for count in stored_counts(Dialect::Sqlite) {
            let mut wrong = conn.prepare(&count.wrong)?;
            for name in wrong.query_map([], |row| row.get::<_, String>(0))? {
                found.push(count.defect(&name?));
            }
        }
        Ok(found)
    };
    read().map_err(|e| sql_error(&e))
}

/// Corrects all counters within the current transaction.
pub(crate) fn count_all(conn: &Connection) -> rusqlite::Result<()> {
    for count in stored_counts(Dialect::Sqlite) {
        conn.execute(&count.recount, [])?;
    }
    Ok(())
}
