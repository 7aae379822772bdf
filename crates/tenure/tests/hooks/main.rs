//! Hooks with real processes. `postgres.rs` runs the same tests on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

mod delivery;
