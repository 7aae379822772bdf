//! The attempt protocol with real processes: `tasks run`, takeovers, lost leases and keepers.

mod keeping;
mod losing;
mod outcomes;
mod project;
mod spared;
mod starting;
mod takeover;
mod terminal;
