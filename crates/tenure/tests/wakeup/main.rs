//! Wake-up with real processes: many projects of one user, their runners and agents, and a machine on which any of them
//! may die.
//!
//! Every test has a home of its own; whatever it started is gone when it ends, also if it fails. Nothing asserts an
//! absolute time of the wall clock: deadlines only turn a hang into a failure. `TENURE_TEST_FULL=1` runs the long counts;
//! `TENURE_TEST_SEED` repeats a random run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

#[expect(dead_code, reason = "the runners' tests use the rest of it")]
#[path = "../runners/processes.rs"]
mod processes;
#[expect(dead_code, reason = "the runners' tests use the rest of it")]
#[path = "../runners/world.rs"]
mod world;

mod chart;
mod cron;
mod death;
mod doctor;
mod dry_run;
mod identity;
mod machine;
mod many;
mod overlap;
mod postgres;
mod soak;
mod timing;
mod unregistered;
