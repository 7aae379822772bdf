//! Hooks: a script to run or a webhook to call when something happens.
//!
//! Guaranteed: no shell is ever involved, and text of others is only ever data; a hook that fails, hangs or cannot be
//! started never breaks the work, takes no longer than its tries and their timeouts, and leaves an [`Outcome`] and a
//! line in the log; an `async` hook outlives the process that fired it; values of `${VARIABLES}` appear in no outcome,
//! no log and no arguments of ours; a hook's own `tenure` commands fire no hooks, so nothing goes round in circles.
//! Not guaranteed: that a hook is called exactly once (a process may be killed between its commit and its hooks, and a
//! webhook that answered too late is called again), nor the order of `async` ones.

mod deliver;
mod fill;
mod happening;
mod log;
mod news;
mod outcome;
mod run;
mod script;
mod wait;
mod webhook;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_core::Clock;

pub use deliver::deliver;
pub use fill::FillError;
pub use happening::Happening;
pub use log::{Entry, HookLog};
pub use news::Ears;
pub use outcome::{Failure, HookResult, Outcome};
pub use run::{fire, preview, run};

/// Where hooks run.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The project's root: scripts run here, and relative commands are found from here.
    pub root: &'a Path,
    /// What a payload says under `project`.
    pub project: &'a Value,
    /// The environment that scripts get and `${VARIABLES}` come from.
    pub vars: &'a BTreeMap<OsString, OsString>,
    pub clock: &'a dyn Clock,
    pub log: &'a HookLog,
    /// Once this can be read, a hook that runs in place is ended and no other is begun.
    pub stop: Option<BorrowedFd<'a>>,
}

/// Our own binary, which `async` hooks are handed to.
#[derive(Debug, Clone)]
pub struct Helper {
    pub program: PathBuf,
    /// What makes it call [`deliver`] with its standard input.
    pub args: Vec<OsString>,
}

/// Belongs to the attempt that the caller may be part of. A hook is not: with the mark it would be ended with the
/// attempt, with the fence it could speak for the holder.
const LEASE_VARIABLES: [&str; 5] =
    ["TENURE_ATTEMPT", "TENURE_FENCE", "TENURE_LEASE", "TENURE_AGENT", "TENURE_TASK_ID"];

/// The environment of a hook's processes.
fn environment(vars: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let mut vars = vars.clone();
    for name in LEASE_VARIABLES {
        vars.remove(&OsString::from(name));
    }
    vars.insert("TENURE_NO_HOOKS".into(), "1".into());
    vars
}
