//! The same races as in `main.rs`, with the rows on a PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

mod checker;
mod copying;
mod dice;
mod fenced;
mod harness;
mod history;
mod hosts;
mod injection;
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
