//! Wake-up with real processes: many projects of one user, their runners and agents, and a machine on which any of them may
//! die.
//!
//! Every test has its own sandbox. Nothing asserts an absolute time of the wall clock: deadlines only turn a hang into a
//! failure. `TENURE_TEST_FULL=1` runs the long counts; `TENURE_TEST_SEED` repeats a random run. `postgres.rs` runs the same
//! tests on PostgreSQL.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod cron;
mod death;
mod decision_table;
mod doctor;
mod dry_run;
mod identity;
mod machine;
mod overlap;
mod registered;
mod soak;
mod timing;
mod trust;

// Only on SQLite: wake-up remembers idle projects by the state of their database files, a writer can be stopped while it
// holds a lock file of the store, a clone can bring a database file, and what is read of it can be counted.
mod copies;
mod history;
mod idle_projects;
mod many;
mod stopped_writer;
mod unregistered;
mod wrong_clock;
