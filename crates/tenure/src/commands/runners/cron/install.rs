//! `tenure runners cron install`.

use std::path::Path;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_runner::timer::{self, Kind, TimerCall, TimerError};
use tenure_sqlite::Directory;

use super::timers::{self, With};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Install a timer that calls wake-up every runners.wakeup.checkInterval
///
/// Lists the projects in which wake-up may start runners. The entry contains the path of this binary, PATH and, if it is
/// not the default, TENURE_HOME.
///
/// Example: tenure runners cron install --with systemd
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    with: With,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let machine = timers::machine(app);
    let kind = args.with.with.or_else(|| timer::usual(&machine)).ok_or_else(|| {
        Report::new(ErrorCode::General, "this machine has neither crontab nor a running systemd")
            .note("Use another scheduler to call `tenure runners wakeup --quiet` every minute.")
    })?;
    let binary = std::env::current_exe()
        .map_err(|e| Report::new(ErrorCode::General, format!("cannot find the tenure binary: {e}")))?;
    let binary = binary
        .to_str()
        .ok_or_else(|| Report::usage("the path of the tenure binary is not UTF-8"))?
        .to_owned();
    let every = app.config(None)?.runners.wakeup.check_interval;
    let call = TimerCall { binary, path: path(app), home: machine.home.clone(), every };
    let projects = woken_projects(app)?;
    let mut text = Text::new();
    if app.global.dry_run {
        let entry = preview(kind, &call).map_err(timers::failed)?;
        text.line(format!("Would install with {}:", kind.as_str())).block(2, &entry);
        list(&mut text, &projects);
        let data = json!({"timer": {"kind": kind.as_str(), "entry": entry}, "projects": projects});
        return Ok(Answer::new(data, text));
    }
    let installed = timer::install(kind, &call, &machine).map_err(timers::failed)?;
    text.styled(Style::Good, "Installed").and(Style::Plain, format!(" with {}:", kind.as_str()));
    text.block(2, &installed.entry.shown);
    list(&mut text, &projects);
    let data = json!({"timer": {
        "kind": kind.as_str(), "entry": installed.entry.shown, "enabled": installed.enable.is_none(),
    }, "projects": projects});
    if let Some(command) = &installed.enable {
        app.printer.warn(&format!("{} did not enable the timer", kind.as_str()));
        return Ok(Answer::new(data, text).hint(hints::enable_timer(command)));
    }
    let answer = Answer::new(data, text).hint(hints::show_timer());
    Ok(if kind == Kind::Systemd { answer.hint(hints::linger()) } else { answer })
}

/// The projects in which wake-up may start runners.
fn woken_projects(app: &App<'_>) -> CommandResult<Vec<String>> {
    let Some(directory) = Directory::open_existing(&app.home()?, app.env.clock.clone())? else {
        return Ok(Vec::new());
    };
    let enabled = directory.projects()?.into_iter().filter(|project| project.enabled);
    Ok(enabled.map(|project| project.path.display().to_string()).collect())
}

fn list(text: &mut Text, projects: &[String]) {
    if projects.is_empty() {
        text.line("No project is registered yet; `tenure init` registers one.");
        return;
    }
    text.line("Wake-up starts runners where work is ready in:").block(2, &projects.join("\n"));
    text.line("To exclude a project, run `tenure projects disable` in it.");
}

/// The existing folders of `PATH` in order, without duplicates.
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

fn preview(kind: Kind, call: &TimerCall) -> Result<String, TimerError> {
    match kind {
        Kind::Cron => timer::cron::line(call),
        Kind::Systemd => timer::systemd::units(call).map(|(service, timer)| format!("{service}\n{timer}")),
        Kind::Launchd => timer::launchd::plist("tenure-wakeup", call),
    }
}
