//! Runners as real processes, with an agent that only pretends: who runs, what becomes of a task when an agent or a runner
//! vanishes, and that nothing of either is left behind.
//!
//! Every test has a project, a home and an agent of its own; whatever it started is gone when it ends, also if it fails.
//! Nothing asserts an absolute time: deadlines only turn a hang into a failure. `TENURE_TEST_FULL=1` runs the long counts;
//! `TENURE_TEST_SEED` repeats a random run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it fails, and says what it measured"
)]

mod agent;
mod crash;
mod database;
mod hooks;
mod idle;
mod limited;
mod locks;
mod output;
mod parked;
mod paused;
mod processes;
mod queue;
mod review;
mod scenarios;
mod secrets;
mod slot;
mod stop;
mod table;
mod world;
