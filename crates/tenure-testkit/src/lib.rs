//! Shared by the tests of several crates: a clock and process liveness that the test sets by hand, a simple in-memory
//! store, the conformance suite that every store has to pass, PostgreSQL servers, a proxy that cuts connections, the check
//! of what many agents did, a small disk, and a harness ([`cli`]) that runs the `tenure` binary.
//!
//! It drives processes, sockets and servers as Unix has them, so it is empty on Windows.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this crate is test code: a failed expectation is a failed test"
)]

pub mod cli;
pub mod clock;
pub mod conformance;
pub mod fixture;
pub mod fleet;
pub mod memory;
pub mod postgres;
pub mod proxy;
mod small_disk;
pub mod world;

pub use clock::ManualClock;
pub use fixture::Fixture;
pub use memory::MemoryStore;
pub use small_disk::SmallDisk;
pub use world::{CountingIds, FakeProcesses};
