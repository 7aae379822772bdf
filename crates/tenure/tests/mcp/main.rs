//! `tenure mcp` with real processes: the protocol, leases, how a server ends, and an independent client.

#![cfg(feature = "serve")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod budgets;
mod client;
mod ends;
mod http;
mod independent;
mod limits;
mod moved;
mod pool;
mod protocol;
mod renewing;
mod setup;
mod shop;
mod supervised;
mod waiting;
