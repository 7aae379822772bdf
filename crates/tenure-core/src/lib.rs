//! The domain of tenure: types, rules, and the lease kernel.
//!
//! This crate does no I/O. Rules are pure decisions over the [`store::Tx`] trait; a store only moves rows. The SQL that
//! the stores have in common is built in [`store`]. Time, new ids and the liveness of processes are passed in, so tests
//! can control all of them.
//!
//! ```
//! use std::time::Duration;
//! use tenure_core::{ErrorCode, config::Document, duration};
//!
//! assert_eq!(duration::parse("1h30m")?, Duration::from_secs(5400));
//! assert!(duration::parse_ttl("40d").is_err(), "a lease lasts 30 days at most");
//! assert_eq!(ErrorCode::TaskLocked.exit_code(), 6);
//! assert!(Document::parse("locking: {leaseTtl: 30m}").is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For a complete claim, see the documentation of `tenure-sqlite`, which provides the rows.

pub mod board;
pub mod clock;
pub mod config;
pub mod context;
pub mod duration;
pub mod ending;
pub mod error;
pub mod event;
pub mod event_text;
pub mod export;
pub mod hints;
pub mod holder;
pub mod id;
pub mod import;
pub mod job;
pub mod kernel;
pub mod lease;
pub mod outcome;
pub mod parking;
pub mod reference;
mod row_names;
pub mod rules;
pub mod runner;
pub mod section;
pub mod session;
pub mod shell_quote;
pub mod short_id;
pub mod store;
pub mod supervised;
pub mod task;
pub mod text;
pub mod why;
pub mod wire;
mod yaml;

pub use clock::{Clock, SystemClock, Timestamp};
pub use context::{Context, Policy};
pub use ending::{Ending, Usage};
pub use error::{Error, ErrorCode, Result};
