//! `tenure demo` and `tenure bench`, apart from their arguments and their output.
//!
//! Both run the real program in a project in a temporary folder. The binary parses the arguments and passes a [`Program`]
//! (the executable and its environment) and [`Interrupts`] (the signals it has caught); what comes back are values that it
//! prints.

pub mod bench;
pub mod demo;
mod error;
mod program;
mod temp_project;

pub use error::{Error, Result};
pub use program::{Interrupts, Program};
