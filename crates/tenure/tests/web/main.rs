//! `tenure web` with real processes: access, changes, streams, numbers, and a real browser. `postgres.rs` runs what concerns the store on PostgreSQL.

#![cfg(feature = "web")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod access;
mod browser;
mod changes;
mod client;
mod numbers;
mod projects;
mod servers;
mod streams;
mod totals;
