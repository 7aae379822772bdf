//! The same composition as in `main.rs`, with the rows on a PostgreSQL server.

#![cfg(feature = "serve")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod bystanders;
mod checker;
mod faults;
mod history;
mod mcp;
mod observer;
mod storm;
mod workers;
