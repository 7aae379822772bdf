//! Timers that call wake-up: cron, a systemd user timer or a launchd agent.
//!
//! Guaranteed: everything else in the user's crontab is unchanged, byte for byte; an installed timer works with an
//! empty environment, because it contains the binary, PATH and a non-default home; a runner that a wake-up starts
//! outlives it. Not guaranteed: that the machine's service is running. Wake-up records when a timer has called it.

pub mod cron;
pub mod launchd;
pub mod systemd;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tenure_core::text::fingerprint;

use crate::{program, sys};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Cron,
    Systemd,
    Launchd,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Cron, Self::Systemd, Self::Launchd];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cron => "cron",
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The command that a timer runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerCall {
    /// The absolute path of tenure itself.
    pub binary: String,
    /// PATH, so that agents and their tools are found.
    pub path: Option<String>,
    /// `TENURE_HOME`, unless it is the default.
    pub home: Option<String>,
    pub every: Duration,
}

/// The machine on which timers are installed.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The caller's environment, for the machine's programs.
    pub vars: BTreeMap<OsString, OsString>,
    pub user_home: Option<PathBuf>,
    /// `TENURE_HOME`, unless it is the default: each home has a separate timer.
    pub home: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    #[error("there is no `{0}` on PATH")]
    NoProgram(&'static str),
    #[error("HOME is not set")]
    NoHome,
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
    #[error("PATH is too long for a line of a crontab, by {0} characters")]
    TooLong(usize),
    #[error("{0}")]
    Impossible(String),
    #[error("cannot write {}: {why}", path.display())]
    File { path: PathBuf, why: String },
}

/// An installed timer that calls wake-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerEntry {
    /// The line of the crontab, or the path of the file.
    pub shown: String,
    /// The binary that it calls.
    pub binary: Option<PathBuf>,
}

/// A newly installed timer, and the remaining manual step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub entry: TimerEntry,
    /// The command that enables it, if the machine refused to.
    pub enable: Option<String>,
}

/// The usual kind of timer on this machine, if any.
pub fn usual(machine: &Machine) -> Option<Kind> {
    sys::usual_timer(machine)
}

pub fn install(kind: Kind, call: &TimerCall, machine: &Machine) -> Result<Installed, TimerError> {
    match kind {
        Kind::Cron => cron::install(call, machine),
        Kind::Systemd => systemd::install(call, machine),
        Kind::Launchd => launchd::install(call, machine),
    }
}

/// False if nothing was installed.
pub fn uninstall(kind: Kind, machine: &Machine) -> Result<bool, TimerError> {
    match kind {
        Kind::Cron => cron::uninstall(machine),
        Kind::Systemd => systemd::uninstall(machine),
        Kind::Launchd => launchd::uninstall(machine),
    }
}

/// The installed timer. Changes nothing.
pub fn find(kind: Kind, machine: &Machine) -> Result<Option<TimerEntry>, TimerError> {
    match kind {
        Kind::Cron => cron::find(machine),
        Kind::Systemd => Ok(systemd::find(machine)),
        Kind::Launchd => Ok(launchd::find(machine)),
    }
}

impl Machine {
    pub(crate) fn has(&self, program: &str) -> bool {
        self.find(program).is_some()
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let path = self.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
        program::find(program, Path::new("/"), path).ok()
    }

    /// Runs one of the machine's programs to completion.
    fn run(&self, program: &'static str, args: &[&OsStr], input: &[u8]) -> Result<Output, TimerError> {
        let found = self.find(program).ok_or(TimerError::NoProgram(program))?;
        let failed = |e: std::io::Error| TimerError::Failed { program, said: e.to_string() };
        let mut command = Command::new(found);
        command.args(args).env_clear().envs(&self.vars).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input reports the reason with its exit code.
            let _ = stdin.write_all(input);
        }
        child.wait_with_output().map_err(failed)
    }

    /// `tenure-wakeup`, with a distinct suffix for a non-default home.
    fn name(&self) -> String {
        match &self.home {
            None => "tenure-wakeup".to_owned(),
            Some(home) => format!("tenure-wakeup-{:08x}", fingerprint(home.as_bytes())),
        }
    }
}

fn said(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let text = String::from_utf8_lossy(text);
    let text = text.trim();
    if text.is_empty() { output.status.to_string() } else { text.to_owned() }
}

/// Writes a file atomically.
fn write(path: &Path, text: &str) -> Result<(), TimerError> {
    let failed = |e: std::io::Error| TimerError::File { path: path.to_owned(), why: e.to_string() };
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

fn remove(path: &Path) -> Result<bool, TimerError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(TimerError::File { path: path.to_owned(), why: e.to_string() }),
    }
}

/// Neither a line of a crontab nor a unit file can contain control characters.
fn refuse_control(words: &[&str]) -> Result<(), TimerError> {
    match words.iter().find(|word| word.chars().any(char::is_control)) {
        Some(word) => Err(TimerError::Impossible(format!("{word:?} contains a control character"))),
        None => Ok(()),
    }
}
