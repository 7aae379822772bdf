//! Executing work under a lease.

pub mod anchor;
pub mod hooks;
pub mod preset;
mod program;
pub mod prompt;
mod template;

pub use program::ProgramError;
