//! The tests of `main.rs` on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use tenure_testkit::cli::{StoreKind, Suite};

pub(crate) const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Postgres };

mod agent;
mod board;
mod charging;
mod crash;
mod damaged;
mod hooks;
mod idle;
mod limited;
mod locks;
mod lost_answer;
mod misconfigured;
mod outage;
mod output;
mod parked;
mod paused;
mod project;
mod queue;
mod reporting;
mod review;
mod scenarios;
mod secrets;
mod server_outage;
mod slot;
mod stop;
mod table;
mod trace;
mod transcripts;
mod trust;
mod usage;
mod wrong_clock;
