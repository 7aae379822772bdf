//! The tests of `main.rs` on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod changes;
mod concurrent;
mod conversations;
mod crew;
mod failures;
mod hostile;
mod kills;
mod many;
mod project;
mod sessions;
mod stopping;
mod store_away;
