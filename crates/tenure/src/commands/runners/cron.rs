//! `tenure runners cron`: having the machine call wake-up by itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::duration::format_rounded;
use tenure_core::{ErrorCode, Timestamp};
use tenure_runner::timer::{self, Call, Entry, Kind, Machine, TimerError};
use tenure_sqlite::Directory;

use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

/// The timer that calls wake-up: install, uninstall, status
///
/// Example: tenure runners cron install
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Have wake-up called every runners.wakeup.checkInterval
    ///
    /// The path of this binary, PATH and a TENURE_HOME of your own are written down with it.
    ///
    /// Example: tenure runners cron install --with systemd
    Install(With),
    /// Take the timer away again, wherever it is
    ///
    /// Example: tenure runners cron uninstall
    Uninstall(With),
    /// Say what is installed and when it last really called
    ///
    /// Example: tenure runners cron status
    Status(With),
}

#[derive(Debug, Default, Clone, Copy, clap::Args)]
struct With {
    /// cron, systemd or launchd (default: install: this machine's way; else: all of them)
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    with: Option<Kind>,
}

pub(super) fn parse_kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| "cron, systemd or launchd".to_owned())
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    match args.verb.unwrap_or(Verb::Status(With::default())) {
        Verb::Install(with) => install(app, with),
        Verb::Uninstall(with) => uninstall(app, with),
        Verb::Status(with) => status(app, with),
    }
}

fn kinds(with: With) -> Vec<Kind> {
    with.with.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind])
}

/// This user's machine, as timers see it.
pub(in crate::commands) fn machine(app: &App<'_>) -> Machine {
    Machine {
        vars: app.env.vars.clone(),
        user_home: app.env.var("HOME").map(PathBuf::from),
        home: own_home(app),
    }
}

/// `TENURE_HOME`, if it is not where it would be looked for anyway.
fn own_home(app: &App<'_>) -> Option<String> {
    let usual = app.env.var("HOME").map(|home| Path::new(home).join(".tenure"));
    let home = app.env.home().filter(|home| Some(home) != usual.as_ref())?;
    Some(home.to_string_lossy().into_owned())
}

fn failed(error: TimerError) -> Report {
    let report = Report::new(ErrorCode::General, error.to_string());
    match error {
        TimerError::NoProgram("crontab") => {
            report.hint("use systemd instead", "tenure runners cron install --with systemd")
        }
        TimerError::TooLong(_) => Report { code: ErrorCode::InvalidArguments, ..report }.hint(
            "write down a shorter one",
            "PATH=/usr/local/bin:/usr/bin:/bin tenure runners cron install",
        ),
        TimerError::Impossible(_) => Report { code: ErrorCode::InvalidArguments, ..report },
        _ => report,
    }
}

/// Folders that are there, each once, in their order.
fn path(app: &App<'_>) -> Option<String> {
    let all = app.env.var("PATH")?;
    let mut kept: Vec<&str> = Vec::new();
    for folder in all.split(':').filter(|folder| folder.starts_with('/')) {
        if !kept.contains(&folder) && Path::new(folder).is_dir() {
            kept.push(folder);
        }
    }
    Some(kept.join(":"))
}

fn install(app: &mut App<'_>, with: With) -> Outcome<Answer> {
    let machine = machine(app);
    let kind = with.with.or_else(|| timer::usual(&machine)).ok_or_else(|| {
        Report::new(ErrorCode::General, "this machine has neither crontab nor a running systemd")
            .note("Have whatever it has instead call `tenure runners wakeup --quiet` every minute.")
    })?;
    let binary = std::env::current_exe()
        .map_err(|e| Report::new(ErrorCode::General, format!("cannot find the tenure binary: {e}")))?;
    let binary = binary
        .to_str()
        .ok_or_else(|| Report::usage("the path of the tenure binary is not UTF-8"))?
        .to_owned();
    let every = app.config(None)?.runners.wakeup.check_interval;
    let call = Call { binary, path: path(app), home: machine.home.clone(), every };
    let mut text = Text::new();
    if app.global.dry_run {
        let entry = preview(kind, &call).map_err(failed)?;
        text.line(format!("Would install with {}:", kind.as_str())).block(2, &entry);
        return Ok(Answer::new(json!({"timer": {"kind": kind.as_str(), "entry": entry}}), text));
    }
    let installed = timer::install(kind, &call, &machine).map_err(failed)?;
    text.styled(Style::Good, "Installed").and(Style::Plain, format!(" with {}:", kind.as_str()));
    text.block(2, &installed.entry.shown);
    let data = json!({"timer": {
        "kind": kind.as_str(), "entry": installed.entry.shown, "enabled": installed.enable.is_none(),
    }});
    if let Some(command) = &installed.enable {
        app.printer.warn(&format!("{} did not enable it", kind.as_str()));
        return Ok(Answer::new(data, text).hint("enable it", command));
    }
    let answer = Answer::new(data, text).hint("see whether it really calls", "tenure runners cron status");
    Ok(if kind == Kind::Systemd {
        answer.hint("keep it going when you are logged out", "loginctl enable-linger")
    } else {
        answer
    })
}

fn preview(kind: Kind, call: &Call) -> Result<String, TimerError> {
    match kind {
        Kind::Cron => timer::cron::line(call),
        Kind::Systemd => timer::systemd::units(call).map(|(service, timer)| format!("{service}\n{timer}")),
        Kind::Launchd => timer::launchd::plist("tenure-wakeup", call),
    }
}

fn uninstall(app: &mut App<'_>, with: With) -> Outcome<Answer> {
    let machine = machine(app);
    let mut removed = Vec::new();
    for kind in kinds(with) {
        let had = if app.global.dry_run {
            timer::find(kind, &machine).map(|entry| entry.is_some())
        } else {
            timer::uninstall(kind, &machine)
        };
        if had.map_err(failed)? {
            removed.push(kind.as_str());
        }
    }
    let mut text = Text::new();
    if removed.is_empty() {
        text.line("No timer was installed.");
    } else {
        text.line(format!("{} the timer of {}", app.past("Removed", "Would remove"), removed.join(", ")));
    }
    Ok(Answer::new(json!({"removed": removed, "total": removed.len()}), text))
}

/// A timer as it is found.
#[derive(Debug)]
pub(in crate::commands) struct Found {
    pub(in crate::commands) kind: Kind,
    pub(in crate::commands) entry: Option<Entry>,
    /// It could not be looked at, and why.
    pub(in crate::commands) trouble: Option<String>,
    pub(in crate::commands) fired_at: Option<Timestamp>,
    /// It has not called for longer than it should take.
    pub(in crate::commands) overdue: bool,
}

impl Found {
    /// What is installed calls something that is not there.
    pub(in crate::commands) fn missing_binary(&self) -> Option<&Path> {
        let binary = self.entry.as_ref()?.binary.as_deref()?;
        (!binary.is_file()).then_some(binary)
    }
}

pub(in crate::commands) fn look(app: &App<'_>, kinds: &[Kind]) -> Outcome<Vec<Found>> {
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
            Found { kind, entry, trouble, fired_at, overdue }
        })
        .collect())
}

/// A timer that skipped a beat may be late; one that skipped two is not running.
pub(in crate::commands) fn patience(every: Duration) -> Duration {
    every * 2 + Duration::from_secs(30)
}

/// When each kind of timer last really called.
pub(in crate::commands) fn fired(app: &App<'_>) -> Outcome<Vec<(String, Timestamp)>> {
    let directory = Directory::open_existing(&app.home()?, app.env.clock.clone())?;
    Ok(directory.map(|directory| directory.timers()).transpose()?.unwrap_or_default())
}

fn status(app: &mut App<'_>, with: With) -> Outcome<Answer> {
    let found = look(app, &kinds(with))?;
    let now = app.env.clock.now();
    let mut text = Text::new();
    let mut rows: Vec<Value> = Vec::new();
    for timer in &found {
        rows.push(json!({
            "kind": timer.kind.as_str(),
            "installed": timer.entry.is_some(),
            "entry": timer.entry.as_ref().map(|entry| &entry.shown),
            "binary": timer.entry.as_ref().and_then(|entry| entry.binary.as_ref()),
            "lastFiredAt": timer.fired_at,
            "firing": timer.entry.is_some() && !timer.overdue,
            "trouble": timer.trouble,
        }));
        let kind = timer.kind.as_str();
        if let Some(trouble) = &timer.trouble {
            text.styled(Style::Warn, kind).and(Style::Plain, format!(": {trouble}"));
        }
        let Some(entry) = &timer.entry else { continue };
        let when = timer.fired_at.map_or_else(
            || "it has never called yet".to_owned(),
            |at| format!("it last called {} ago, at {}", format_rounded(now.since(at)), at.to_seconds()),
        );
        let style = if timer.overdue { Style::Warn } else { Style::Good };
        text.styled(style, format!("Installed with {kind}")).and(Style::Plain, format!("; {when}"));
        text.block(2, &entry.shown);
        if let Some(binary) = timer.missing_binary() {
            text.styled(Style::Bad, format!("  {} is not there any more", binary.display()));
        }
    }
    let none = found.iter().all(|timer| timer.entry.is_none());
    if none {
        text.line("No timer is installed: nothing is started by itself.");
    }
    let answer = Answer::new(json!({"timers": rows, "total": rows.len()}), text);
    Ok(if none || found.iter().any(|timer| timer.missing_binary().is_some()) {
        answer.hint("have wake-up called every minute", "tenure runners cron install")
    } else {
        answer
    })
}
