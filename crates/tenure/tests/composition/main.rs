//! Everything beside everything else: runners, MCP clients, waiters, jobs, exclusive locks, wake-ups, evictions and overrides
//! in one project, while processes are killed and paused and the store is away. The recorded history is checked afterwards,
//! and all work has to be completed soon after the faults stop.
//!
//! `TENURE_TEST_FULL=1` runs ten minutes, `TENURE_TEST_SECONDS=N` runs N seconds, `TENURE_TEST_SEED` repeats the random
//! choices of a run.

#![cfg(feature = "serve")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod bystanders;
mod checker;
mod faults;
mod history;
mod mcp;
mod observer;
mod storm;
mod tampered;
mod workers;
