//! Shared test support: a controlled clock and machine, a simple reference store, and the conformance suite that
//! every store has to pass.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this crate is test code: a failed expectation is a failed test"
)]

pub mod clock;
pub mod conformance;
pub mod fixture;
pub mod memory;
pub mod postgres;
pub mod proxy;
mod small_disk;
pub mod world;

pub use clock::ManualClock;
pub use fixture::Fixture;
pub use memory::MemoryStore;
pub use small_disk::SmallDisk;
pub use world::{CountingIds, FakeWorld};
