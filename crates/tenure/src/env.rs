//! Everything that the program takes from its environment, as values, so that a test can supply others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::holder::{Incarnation, Judge, ProcessIdentity, ThisMachine};
use tenure_core::id::{Ids, RandomIds};
use tenure_core::{Clock, SystemClock};
use tenure_runner::KnownProcesses;

use crate::sys;

#[derive(Debug, Clone)]
pub struct Env {
    pub vars: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
    /// The controlling terminal's name (`pts/3`), if there is one.
    pub terminal: Option<String>,
    /// The leader of the terminal's session, usually a shell. A person's claims last no longer than it lives.
    pub terminal_leader: Option<Incarnation>,
    /// Whether standard input is a terminal, where a person can answer a question.
    pub input_is_terminal: bool,
    pub user: String,
    pub hostname: String,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub judge: Arc<dyn Judge>,
}

impl Env {
    pub fn of_this_process() -> Self {
        let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let named = |name: &str| vars.get(&OsString::from(name)).and_then(|v| v.to_str()).map(str::to_owned);
        let user = sys::USER.into_iter().find_map(named).filter(|name| !name.is_empty());
        let terminal = sys::controlling_terminal();
        Self {
            cwd: std::env::current_dir().unwrap_or_default(),
            terminal_leader: terminal.is_some().then(session_leader).flatten(),
            terminal,
            input_is_terminal: io::stdin().is_terminal(),
            user: user.unwrap_or_else(sys::nameless_user),
            hostname: tenure_lock::hostname(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            judge: Arc::new(KnownProcesses::new(ThisMachine)),
            vars,
        }
    }

    /// The value of a variable, unless it is unset, empty or not UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(&OsString::from(name)).and_then(|v| v.to_str()).filter(|v| !v.is_empty())
    }

    /// Whether a variable is set to anything but the empty string, `0`, `false` or `no`.
    pub fn flag(&self, name: &str) -> bool {
        self.var(name).is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "0" | "false" | "no"))
    }

    /// The user's home folder.
    pub fn user_home(&self) -> Option<&Path> {
        self.var(sys::HOME).map(Path::new)
    }

    /// `TENURE_HOME`, else `~/.tenure`.
    pub fn home(&self) -> Option<PathBuf> {
        match self.var("TENURE_HOME") {
            Some(path) => Some(self.cwd.join(path)),
            None => self.user_home().map(|home| home.join(".tenure")),
        }
    }
}

/// The leader of this process's session. `None` if that is this process, which ends with the command.
fn session_leader() -> Option<Incarnation> {
    let me = std::process::id();
    let leader = tenure_lock::ProcessInfo::of(me)?.session;
    if leader == 0 || leader == me {
        return None;
    }
    Some(Incarnation { process: ProcessIdentity::of(leader)?, hostname: tenure_lock::hostname() })
}

/// Standard output and standard error.
pub struct Output {
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub out_is_terminal: bool,
    pub err_is_terminal: bool,
    /// The terminal's width in columns.
    pub width: usize,
    /// The terminal's height in lines.
    pub height: usize,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("width", &self.width).finish_non_exhaustive()
    }
}

impl Output {
    /// Discards everything, for callers that use the returned value only.
    pub(crate) fn sink() -> Self {
        Self {
            out: Box::new(io::sink()),
            err: Box::new(io::sink()),
            out_is_terminal: false,
            err_is_terminal: false,
            width: 80,
            height: 24,
        }
    }

    /// The width of help texts; longer lines are hard to read.
    pub(crate) fn help_width(&self) -> usize {
        const MAX: usize = 100;
        if self.out_is_terminal { self.width.min(MAX) } else { MAX }
    }

    pub fn standard() -> Self {
        let (columns, rows) = sys::terminal_size().unwrap_or_default();
        let or = |size: usize, default: usize| if size == 0 { default } else { size };
        let (width, height) = (or(columns, 80), or(rows, 24));
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            width,
            height,
        }
    }
}
