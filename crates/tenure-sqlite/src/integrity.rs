//! SQLite's check of its file, and a check of the counters that the store keeps.

use rusqlite::Connection;
use tenure_core::Result;
use tenure_core::job::ItemState;
use tenure_core::store::{Defect, FINISHED};

use crate::error::sql_error;

/// The most defects of each kind that are reported; the first few suffice for a badly damaged file.
const MOST: usize = 20;

/// A stored count: its column, and the query that computes its right value.
struct Counter {
    table: &'static str,
    column: &'static str,
    name: &'static str,
    count: String,
}

fn counters() -> Vec<Counter> {
    let of = |table, column, name, count: &str| Counter { table, column, name, count: format!("({count})") };
    let mut all = vec![
        of(
            "tasks",
            "open_deps",
            "key",
            &format!(
                "SELECT count(*) FROM task_deps d JOIN tasks o ON o.id = d.depends_on
                 WHERE d.task_id = tasks.id AND o.status NOT IN {FINISHED}"
            ),
        ),
        of(
            "sections",
            "open_tasks",
            "name",
            &format!(
                "SELECT count(*) FROM tasks t WHERE t.section_id = sections.id AND t.status NOT IN {FINISHED}"
            ),
        ),
    ];
    let items = "SELECT count(*) FROM job_items i WHERE i.job_id = jobs.id";
    all.push(of("jobs", "total", "name", items));
    for state in ItemState::ALL {
        all.push(of("jobs", state.as_str(), "name", &format!("{items} AND i.state = '{state}'")));
    }
    all
}

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
        for Counter { table, column, name, count } in counters() {
            let sql = format!("SELECT {name} FROM {table} WHERE {column} <> {count} LIMIT {MOST}");
            let mut wrong = conn.prepare(&sql)?;
            for name in wrong.query_map([], |row| row.get::<_, String>(0))? {
                let what = format!("{table}.{column} of {:?} is not what it should be", name?);
                found.push(Defect { what, mendable: true });
            }
        }
        Ok(found)
    };
    read().map_err(|e| sql_error(&e))
}

/// Corrects all counters. The caller holds the gate.
pub(crate) fn recount(conn: &Connection, dry_run: bool) -> Result<()> {
    let count = || -> rusqlite::Result<()> {
        let change = conn.unchecked_transaction()?;
        count_all(&change)?;
        if dry_run { change.rollback() } else { change.commit() }
    };
    count().map_err(|e| sql_error(&e))
}

/// Corrects all counters within the current transaction.
pub(crate) fn count_all(conn: &Connection) -> rusqlite::Result<()> {
    for Counter { table, column, count, .. } in counters() {
        conn.execute(&format!("UPDATE {table} SET {column} = {count} WHERE {column} <> {count}"), [])?;
    }
    Ok(())
}
