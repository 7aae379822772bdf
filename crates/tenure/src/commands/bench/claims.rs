//! Claims in one process, beside the same rows written with SQLite and nothing around them.

use std::time::Instant;

use rusqlite::{Connection, ToSql};

use super::ground::{agent, claim, claimable, median, tasks_for};
use super::{Bench, failed, float};
use crate::report::Outcome;

const BLOCK: usize = 40;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let blocks = bench.rounds(40);
    let (ours, raw) = (bench.ground(tasks_for(blocks * BLOCK))?, bench.ground(tasks_for(blocks * BLOCK))?);
    let keys: Vec<String> = claimable().take(blocks * BLOCK).collect();
    let (store, caller) = (ours.store()?, agent("a"));
    let conn = connect(&raw.scratch.database()).map_err(failed)?;
    let (mut by_us, mut by_hand) = (Vec::new(), Vec::new());
    for (number, block) in keys.chunks_exact(BLOCK).enumerate() {
        let begun = Instant::now();
        for key in block {
            claim(store.as_ref(), &caller, key)?;
        }
        by_us.push(begun.elapsed());
        let begun = Instant::now();
        for (place, key) in block.iter().enumerate() {
            raw_claim(&conn, key, number * BLOCK + place).map_err(failed)?;
        }
        by_hand.push(begun.elapsed());
        bench.go_on()?;
    }
    let (us, hand) = (median(&mut by_us), median(&mut by_hand));
    bench.table.told("raw commits of a claim's rows, synced", float(BLOCK as u64) / hand, "/s");
    bench.table.at_least("claims per second ÷ raw commits", hand / us, "×", 0.6);
    Ok(())
}

fn connect(database: &std::path::Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(database)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")?;
    Ok(conn)
}

/// The same rows as a claim writes.
fn raw_claim(conn: &Connection, key: &str, number: usize) -> rusqlite::Result<()> {
    let one = |sql: &str, values: &[&dyn ToSql]| conn.prepare_cached(sql)?.execute(values).map(drop);
    one("BEGIN IMMEDIATE", &[])?;
    let id: String =
        conn.prepare_cached("SELECT id FROM tasks WHERE key = ?1")?.query_row([key], |row| row.get(0))?;
    one(
        "INSERT INTO leases (lease_id, resource_kind, resource_id, holder_kind, holder_id, ttl_ms, acquired_at,
                             heartbeat_at, expires_at, claimed_from)
         VALUES (?1, 'task', ?2, 'agent', 'raw', 900000, 1794768000000, 1794768000000, 1794768900000, 'pending')",
        &[&format!("L{number:08X}"), &id],
    )?;
    one(
        "INSERT INTO events (at, kind, actor, task_id, fence, detail)
         VALUES (1794768000000, 'lease.acquired', 'raw', ?1, ?2, ?3)",
        &[
            &id,
            &conn.last_insert_rowid(),
            &format!(
                "{{\"lease\":\"L{number:08X}\",\"resource\":\"task:{id}\",\"holder\":\"agent raw\",\
                 \"expiresAt\":\"2026-11-15T20:38:02.468Z\",\"takenOverFrom\":null}}"
            ),
        ],
    )?;
    one("UPDATE tasks SET status = 'in_progress', updated_at = 1794768000000 WHERE id = ?1", &[&id])?;
    one(
        "INSERT INTO events (at, kind, actor, task_id, from_status, to_status, fence)
         VALUES (1794768000000, 'task.status', 'raw', ?1, 'pending', 'in_progress', ?2)",
        &[&id, &1],
    )?;
    one(
        "INSERT INTO agents (id, joined_at, last_seen_at) VALUES ('raw', 1, ?1)
         ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at",
        &[&1_794_768_000_000_i64],
    )?;
    one("COMMIT", &[])
}
