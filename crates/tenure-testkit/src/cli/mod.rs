//! Tests of the command line: runs the `tenure` binary in a hermetic environment, with projects on either store.
//!
//! A [`Sandbox`] is one user on one machine: a temporary home, a search path and fixed variables. A [`Project`] lives in a
//! sandbox, on the store that the [`Suite`] names. A suite is compiled once per store: `main.rs` and `postgres.rs` of its
//! folder each declare their `SUITE` and the modules that are meaningful there.
//!
//! Every wait is bounded by [`HANG`], and everything that a test starts ends with its sandbox, even if the test fails.

mod agent;
mod dice;
pub mod processes;
mod project;
mod running;
mod sandbox;
mod terminal;
mod waiting;
mod wrong_clock;

pub use agent::{HASTY, PATIENT};
pub use dice::Dice;
pub use project::{HeldStore, Project};
pub use running::{Answer, Running};
pub use sandbox::{Sandbox, write_program};
pub use terminal::Terminal;
pub use waiting::{HANG, full_or, is_like_macos, lacks_linux, skip, until, until_within};
pub use wrong_clock::faketime;

/// Where the projects of a suite keep their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    Sqlite,
    Postgres,
}

/// What a suite runs: the binary, and the store that its projects are on.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// `env!("CARGO_BIN_EXE_tenure")`, which only the package's own integration tests can name.
    pub binary: &'static str,
    pub store: StoreKind,
}

impl Suite {
    pub fn is_on_postgres(&self) -> bool {
        self.store == StoreKind::Postgres
    }
}
