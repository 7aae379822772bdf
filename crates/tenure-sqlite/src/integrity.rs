//! SQLite's own check of its file, and of what our triggers count.

use rusqlite::Connection;
use tenure_core::Result;
use tenure_core::store::Defect;

use crate::error::sql_error;

/// Of a file that is damaged all over, the first few pages say enough.
const MOST: usize = 20;

/// Counters that triggers keep: what they say, and what they should.
const COUNTERS: [(&str, &str, &str, &str); 2] = [
    (
        "tasks",
        "open_deps",
        "key",
        "(SELECT count(*) FROM task_deps d JOIN tasks o ON o.id = d.depends_on
          WHERE d.task_id = tasks.id AND o.status NOT IN ('completed', 'skipped'))",
    ),
    (
        "sections",
        "open_tasks",
        "name",
        "(SELECT count(*) FROM tasks t WHERE t.section_id = sections.id AND t.status NOT IN ('completed', 'skipped'))",
    ),
];

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
        for (table, counter, name, count) in COUNTERS {
            let sql = format!("SELECT {name} FROM {table} WHERE {counter} <> {count} LIMIT {MOST}");
            let mut wrong = conn.prepare(&sql)?;
            for name in wrong.query_map([], |row| row.get::<_, String>(0))? {
                let what = format!("{table}.{counter} of {:?} is not what it should be", name?);
                found.push(Defect { what, mendable: true });
            }
        }
        Ok(found)
    };
    read().map_err(|e| sql_error(&e))
}

/// Counts again. Call it with the gate held.
pub(crate) fn recount(conn: &Connection, dry_run: bool) -> Result<()> {
    let count = || -> rusqlite::Result<()> {
        let change = conn.unchecked_transaction()?;
        for (table, counter, _, count) in COUNTERS {
            change
                .execute(&format!("UPDATE {table} SET {counter} = {count} WHERE {counter} <> {count}"), [])?;
        }
        if dry_run { change.rollback() } else { change.commit() }
    };
    count().map_err(|e| sql_error(&e))
}
