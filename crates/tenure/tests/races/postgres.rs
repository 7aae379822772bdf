//! The same races as in `main.rs`, with the rows on a PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod checker;
mod copying;
mod fenced;
mod following;
mod harness;
mod history;
mod hosts;
mod injection;
mod listeners;
mod nemesis;
mod outage;
mod passwords;
mod restart;
mod round_trips;
mod skew;
mod waiting;
mod watcher;
mod winner;
mod writers;
