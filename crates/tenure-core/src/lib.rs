//! Placeholder.

pub mod config;
pub mod duration;
