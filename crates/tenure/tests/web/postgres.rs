//! `tenure web` with real processes, on PostgreSQL: what concerns the store.

#![cfg(feature = "web")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod changes;
mod client;
mod numbers;

mod streams;
