//! The program that is shown and measured, as the running binary describes itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::id::Ids;
use tenure_sqlite::OpenOptions;

use crate::{Error, Result};

#[derive(Debug, Clone)]
pub struct Program {
    /// The path of the executable.
    pub binary: PathBuf,
    /// The environment for its processes. Variables that begin with `TENURE_` are not passed on.
    pub vars: Vec<(OsString, OsString)>,
    /// Where a project has its database, relative to the project's folder.
    pub database: PathBuf,
    /// Where a project has its configuration, relative to the project's folder.
    pub config: PathBuf,
    pub store_options: OpenOptions,
    /// Where the names of temporary folders come from.
    pub ids: Arc<dyn Ids>,
}

/// The signals that end a run early.
pub trait Interrupts {
    /// The exit code for the signal that was caught, if one was.
    fn caught(&self) -> Option<u8>;

    /// Sleeps until the time is over or a signal is caught.
    fn wait(&self, time: Duration);
}

impl dyn Interrupts + '_ {
    /// Fails once a signal was caught.
    pub(crate) fn check(&self) -> Result<()> {
        self.caught().map_or(Ok(()), |code| Err(Error::Interrupted(code)))
    }
}
