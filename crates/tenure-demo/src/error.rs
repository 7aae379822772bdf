//! Errors, with the information that the binary needs for exit codes and hints.

use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Core(#[from] tenure_core::Error),
    #[error("cannot {verb} {}: {source}", path.display())]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    /// The temporary directory is missing or not writable. `command` is the command that needed it.
    #[error("cannot create {}: {source}", path.display())]
    TempFolder { command: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot run a command: {0}")]
    Spawn(io::Error),
    #[error("{tool} is not installed, so there is nothing to compare with")]
    NotInstalled { tool: &'static str, install: &'static str },
    #[error("the benchmark failed: {0}")]
    Bench(String),
    /// A signal ended the run; the number is the exit code for it.
    #[error("interrupted")]
    Interrupted(u8),
}

impl Error {
    /// A condition that the benchmark requires does not hold.
    pub fn bench(why: impl std::fmt::Display) -> Self {
        Self::Bench(why.to_string())
    }
}
