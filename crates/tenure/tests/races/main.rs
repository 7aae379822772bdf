//! Many processes of the real program at the same time: which of them wins, waits or is refused, and what they leave behind.
//!
//! Every test has its own project and home. Nothing asserts an absolute time: deadlines only turn a hang into a
//! failure. `TENURE_TEST_FULL=1` runs the long counts; `TENURE_TEST_SEED` repeats a random run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod checker;
mod fenced;
mod following;
mod harness;
mod history;
mod nemesis;
mod replaced;
mod restored;
mod scale;
mod waiting;
mod watcher;
mod winner;
mod writers;

// Only on SQLite: a server has its own clock.
mod wrong_clock;
