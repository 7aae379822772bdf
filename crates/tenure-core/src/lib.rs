//! Placeholder.

pub mod import;
pub mod text;
