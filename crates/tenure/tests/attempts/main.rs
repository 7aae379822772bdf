//! The attempt protocol with real processes: `tasks run`, takeovers, lost leases and keepers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod belonging;
mod keeping;
mod losing;
mod outcomes;
mod project;
mod spared;
mod starting;
mod takeover;
mod terminal;
