//! The tests of `main.rs` on PostgreSQL.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod cron;
mod death;
mod decision_table;
mod doctor;
mod dry_run;
mod identity;
mod machine;
mod overlap;
mod registered;
mod soak;
mod timing;
mod trust;

// Only on PostgreSQL: several machines share one project.
mod several_machines;
