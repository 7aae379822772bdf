//! Jobs, sessions and their resume, as real processes: interrupted work continues, and no finished work is repeated.
//!
//! Nothing asserts an absolute time: deadlines only turn a hang into a failure. `TENURE_TEST_FULL=1` runs the long counts;
//! `TENURE_TEST_SEED` repeats a random run. `postgres.rs` runs the same tests on PostgreSQL.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod changes;
mod concurrent;
mod conversations;
mod crew;
mod failures;
mod hostile;
mod kills;
mod many;
mod project;
mod sessions;
mod stopping;
mod store_away;

// Only on SQLite: these tests fill the disk of the database, kill a process at a write to the file, and measure the
// processor time of a checkpoint, which on PostgreSQL the server spends.
mod checkpoint_cost;
mod every_write;
mod full_disk;
