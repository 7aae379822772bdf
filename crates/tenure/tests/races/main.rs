//! Many processes of the real program at once: who wins, who waits, who is refused, and what is left afterwards.
//!
//! Every test has a project and a home of its own. Nothing asserts an absolute time: deadlines are only there so that a
//! hang becomes a failure. `TENURE_TEST_FULL=1` runs the long counts; `TENURE_TEST_SEED` repeats a random run.

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
mod harness;
mod history;
mod nemesis;
mod scale;
mod waiting;
mod watcher;
mod winner;
mod writers;
