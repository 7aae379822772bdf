//! The domain of tenure: types, rules, and the lease kernel.
//!
//! Nothing here does I/O and nothing here speaks SQL. Rules are pure decisions over the [`store::Tx`] trait; a
//! store only moves rows. Time, new ids and the liveness of processes come in from outside, so every rule can be
//! tested with a clock and a world of the test's own making.

pub mod clock;
pub mod config;
pub mod duration;
pub mod error;
pub mod event;
pub mod holder;
pub mod id;
pub mod import;
pub mod job;
pub mod kernel;
pub mod lease;
pub mod reference;
pub mod rules;
pub mod runner;
pub mod section;
pub mod session;
pub mod store;
pub mod task;
pub mod text;
pub mod wire;
pub mod world;

pub use clock::{Clock, SystemClock, Timestamp};
pub use error::{Error, ErrorCode, Result};
pub use world::{Policy, World};
