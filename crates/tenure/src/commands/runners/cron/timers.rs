//! Timers: the kinds, which of them are installed, and when each last fired.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::hints;
use tenure_core::{ErrorCode, Timestamp};
use tenure_runner::timer::{self, Kind, Machine, TimerEntry, TimerError};
use tenure_sqlite::Directory;

use crate::app::App;
use crate::report::{CommandResult, Report};

/// The kind of timer, which every verb of `cron` takes.
#[derive(Debug, Default, Clone, Copy, clap::Args)]
pub(super) struct With {
    /// cron, systemd or launchd (default: for install, what this machine uses; otherwise all)
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub(super) with: Option<Kind>,
}

impl With {
    /// The given kind, or all kinds.
    pub(super) fn kinds(self) -> Vec<Kind> {
        self.with.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind])
    }
}

pub(in crate::commands) fn parse_kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| "cron, systemd or launchd".to_owned())
}

/// The environment that timers depend on.
pub(in crate::commands) fn machine(app: &App<'_>) -> Machine {
    Machine {
        vars: app.env.vars.clone(),
        user_home: app.env.user_home().map(PathBuf::from),
        home: own_home(app),
    }
}

/// `TENURE_HOME`, unless it is the default.
fn own_home(app: &App<'_>) -> Option<String> {
    let usual = app.env.user_home().map(|home| home.join(".tenure"));
    let home = app.env.home().filter(|home| Some(home) != usual.as_ref())?;
    Some(home.to_string_lossy().into_owned())
}

pub(super) fn failed(error: TimerError) -> Report {
    let report = Report::new(ErrorCode::General, error.to_string());
    match error {
        TimerError::NoProgram("crontab") => report
            .note("Any other scheduler may call `tenure runners wakeup --quiet` once a minute.")
            .hint(hints::preview_wakeup()),
        TimerError::TooLong(_) => Report { code: ErrorCode::InvalidArguments, ..report }
            .note("The line has your PATH: run the command with a shorter one, by the program's whole path."),
        TimerError::Impossible(_) => Report { code: ErrorCode::InvalidArguments, ..report },
        _ => report,
    }
}

/// A kind of timer, and whether it is installed.
#[derive(Debug)]
pub(in crate::commands) struct Timer {
    pub(in crate::commands) kind: Kind,
    pub(in crate::commands) entry: Option<TimerEntry>,
    /// Why its state could not be read.
    pub(in crate::commands) trouble: Option<String>,
    pub(in crate::commands) fired_at: Option<Timestamp>,
    /// Whether it is installed and has not fired in time.
    pub(in crate::commands) overdue: bool,
}

impl Timer {
    /// The program that the timer runs, if the file does not exist.
    pub(in crate::commands) fn missing_binary(&self) -> Option<&Path> {
        let binary = self.entry.as_ref()?.binary.as_deref()?;
        (!binary.is_file()).then_some(binary)
    }
}

/// The state of each of `kinds`.
pub(in crate::commands) fn timer_states(app: &App<'_>, kinds: &[Kind]) -> CommandResult<Vec<Timer>> {
    let machine = machine(app);
    let fired = fired(app)?;
    let patience = patience(app.config(None)?.runners.wakeup.check_interval);
    let now = app.env.clock.now();
    Ok(kinds
        .iter()
        .map(|&kind| {
            let (entry, trouble) = match timer::find(kind, &machine) {
                Ok(entry) => (entry, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let fired_at = fired.iter().find(|(of, _)| of == kind.as_str()).map(|(_, at)| *at);
            let overdue = entry.is_some() && fired_at.is_none_or(|at| now.since(at) > patience);
            Timer { kind, entry, trouble, fired_at, overdue }
        })
        .collect())
}

/// How long after its last call a timer counts as firing: one missed call is tolerated, two are not.
pub(in crate::commands) fn patience(every: Duration) -> Duration {
    every * 2 + Duration::from_secs(30)
}

/// When each kind of timer last fired.
pub(in crate::commands) fn fired(app: &App<'_>) -> CommandResult<Vec<(String, Timestamp)>> {
    let directory = Directory::open_existing(&app.home()?, app.env.clock.clone())?;
    Ok(directory.map(|directory| directory.timers()).transpose()?.unwrap_or_default())
}
