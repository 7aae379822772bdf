//! Runners as real processes, with a pretend agent: how many run at a time, what happens to a task when an agent or a runner
//! dies, and that no process of either is left.
//!
//! Every test has its own sandbox. Nothing asserts an absolute time: deadlines only turn a hang into a failure.
//! `TENURE_TEST_FULL=1` runs the long counts; `TENURE_TEST_SEED` repeats a random run. `postgres.rs` runs the same tests on
//! PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod agent;
mod board;
mod charging;
mod crash;
mod damaged;
mod hooks;
mod idle;
mod limited;
mod locks;
mod misconfigured;
mod outage;
mod output;
mod parked;
mod paused;
mod project;
mod queue;
mod reporting;
mod review;
mod scenarios;
mod secrets;
mod slot;
mod stop;
mod table;
mod trace;
mod transcripts;
mod trust;
mod usage;
mod wrong_clock;

// The terminal is the same on every store.
mod board_terminal;

// Only on SQLite: its locks, and a database file that vanishes, is copied or moved, or cannot grow.
mod copies;
mod database;
mod enqueueing;
mod full_disk;
mod moved;
