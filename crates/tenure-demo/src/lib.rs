//! `tenure demo`, `tenure self-check` and `tenure bench`, apart from their arguments and their output.
//!
//! They run the real program in a project in a temporary folder. The binary parses the arguments and passes a [`Program`]
//! (the executable and its environment) and [`Interrupts`] (the signals it has caught); what comes back are values that it
//! prints.

pub mod bench;
mod check;
pub mod demo;
mod error;
mod program;
pub mod self_check;
mod sys;
mod temp_project;

pub use check::Check;
pub use error::{Error, Result};
pub use program::{Interrupts, Program};
