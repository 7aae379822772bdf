//! Hooks: a script to run or a webhook to call on an event.
//!
//! Guaranteed: no shell is involved, and text from tasks is only ever data; a hook that fails, hangs or cannot be started
//! does not affect the command, takes no longer than its tries and their timeouts, and leaves an [`Outcome`] and a line in
//! the log; an `async` hook outlives the process that fired it; values of `${VARIABLES}` appear in no outcome, in no log
//! and in no argument of a tenure process; `tenure` commands that a hook runs fire no hooks, so hooks cannot loop.
//! Not guaranteed: that a hook is called exactly once (a process may be killed between its commit and its hooks, and a
//! webhook that answered too late is called again), nor the order of `async` hooks.

mod context;
mod deliver;
mod fill;
mod filter;
mod log;
mod outcome;
mod run;
mod script;
mod wait;
mod webhook;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fd::BorrowedFd;
use serde_json::Value;
use tenure_core::Clock;

use crate::detach::NO_ATTEMPT;

pub use context::HookContext;
pub use deliver::deliver;
pub use fill::FillError;
pub use filter::HookFilter;
pub use log::{HookLog, LogEntry};
pub use outcome::{Failure, HookResult, Outcome};
pub use run::{fire, preview, run};

/// Where hooks run and what they can read.
#[derive(Debug, Clone, Copy)]
pub struct HookEnvironment<'a> {
    /// The project's root: scripts run here, and relative commands are resolved from here.
    pub root: &'a Path,
    /// The `project` of a payload.
    pub project: &'a Value,
    /// The environment of scripts and the source of `${VARIABLES}`.
    pub vars: &'a BTreeMap<OsString, OsString>,
    pub clock: &'a dyn Clock,
    pub log: &'a HookLog,
    /// Once this is readable, a hook that runs in this process is stopped and no further one is started.
    pub stop: Option<BorrowedFd<'a>>,
}

/// The tenure binary, which delivers `async` hooks.
#[derive(Debug, Clone)]
pub struct Helper {
    pub program: PathBuf,
    /// The arguments with which it calls [`deliver`] on its standard input.
    pub args: Vec<OsString>,
}

/// Variables of the attempt that the caller may be part of. A hook does not get them: with the mark it would be killed
/// with the attempt, with the fence it could act as the holder, and it is the user's program, not the agent's.
const LEASE_VARIABLES: [&str; 5] =
    ["TENURE_FENCE", "TENURE_LEASE", "TENURE_AGENT", "TENURE_TASK_ID", tenure_core::supervised::VARIABLE];

/// The environment variables of a hook's processes.
fn process_variables(vars: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let mut vars = vars.clone();
    for name in LEASE_VARIABLES {
        vars.remove(&OsString::from(name));
    }
    // This variable is only for the process that it was given to.
    vars.remove(&OsString::from("TENURE_TRUST"));
    vars.insert(NO_ATTEMPT.0.into(), NO_ATTEMPT.1.into());
    vars.insert("TENURE_NO_HOOKS".into(), "1".into());
    vars
}
