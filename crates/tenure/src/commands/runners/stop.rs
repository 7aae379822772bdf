//! `tenure runners stop`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_core::runner::Runner;
use tenure_runner::Signal;
use tenure_runner::processes::signal_one;
use tenure_sqlite::{Directory, KnownRunner};

use super::list::known;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Stop a runner: its agent is ended and its task returned
///
/// Without an id it stops this project's runners. It is not an error if none is running.
///
/// Example: tenure runners stop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The runner: its id, or a prefix of the id
    id: Option<String>,
    /// Stop every runner on this machine
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Kill it, then clean up after it
    #[arg(long)]
    force: bool,
}

/// How long to wait in addition to the grace period that the runner gives its agent.
const SLACK: Duration = Duration::from_secs(5);

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let targets = targets(app, &args)?;
    stop(app, &targets, args.force)
}

/// Stops the runner of this project with exactly this id.
#[cfg(feature = "web")]
pub(crate) fn stop_own(app: &mut App<'_>, id: &str) -> CommandResult<Answer> {
    let here = app.find()?.paths.root.to_string_lossy().into_owned();
    let directory = Directory::open_existing(&app.home()?, app.env.clock.clone())?;
    let mut targets = directory.map(|directory| known(app, &directory)).transpose()?.unwrap_or_default();
    targets.retain(|known| known.runner.id == id && known.runner.project_path == here);
    if targets.is_empty() {
        return Err(unknown(id));
    }
    targets.retain(|known| !known.runner.status.is_over());
    stop(app, &targets, false)
}

fn stop(app: &mut App<'_>, targets: &[KnownRunner], force: bool) -> CommandResult<Answer> {
    let mut text = Text::new();
    if targets.is_empty() {
        text.line("No runner is running.");
    }
    let mut stopped: Vec<Value> = Vec::new();
    let mut still_running = Vec::new();
    for known in targets {
        let runner = &known.runner;
        let short: String = runner.id.chars().take(8).collect();
        if app.global.dry_run {
            text.line(format!("Would stop runner {short} (pid {})", runner.process.process.pid));
        } else if end(app, runner, force) {
            if force {
                super::reconcile_at(app, &runner.project_path)?;
            }
            text.line(format!("Stopped runner {short} (pid {})", runner.process.process.pid));
        } else {
            still_running.push(short.clone());
        }
        stopped.push(
            json!({"id": runner.id, "pid": runner.process.process.pid, "projectPath": runner.project_path}),
        );
    }
    if let Some(short) = still_running.first() {
        return Err(Report::new(
            ErrorCode::General,
            format!("runner {short} was asked to stop and is still running"),
        )
        .hint(hints::show_runner_log(short)));
    }
    Ok(Answer::new(json!({"runners": stopped, "total": stopped.len()}), text))
}

/// Returns false if it is still running after the grace period.
fn end(app: &App<'_>, runner: &Runner, force: bool) -> bool {
    let signal = if force { Signal::KILL } else { Signal::TERM };
    signal_one(&runner.process, app.env.judge.as_ref(), signal, grace(app, runner)).unwrap_or(false)
}

fn grace(app: &App<'_>, runner: &Runner) -> Duration {
    let config = app.project_at(Path::new(&runner.project_path)).and_then(|project| project.config.ok());
    config.map_or(SLACK, |config| config.runners.kill_grace) + SLACK
}

fn targets(app: &App<'_>, args: &Args) -> CommandResult<Vec<KnownRunner>> {
    let here = if args.id.is_none() && !args.all { Some(app.find()?) } else { None };
    let home = app.home()?;
    let Some(directory) = Directory::open_existing(&home, app.env.clock.clone())? else {
        return match &args.id {
            Some(id) => Err(unknown(id)),
            None => Ok(Vec::new()),
        };
    };
    let mut all = known(app, &directory)?;
    if let Some(id) = &args.id {
        let mut matching: Vec<_> = all.into_iter().filter(|k| k.runner.id.starts_with(id.as_str())).collect();
        return match matching.len() {
            0 => Err(unknown(id)),
            1 => {
                matching.retain(|k| !k.runner.status.is_over());
                Ok(matching)
            }
            _ => Err(Report::new(ErrorCode::Ambiguous, format!("several runner ids start with {id}"))
                .hint(hints::list_runners())),
        };
    }
    all.retain(|k| !k.runner.status.is_over());
    if let Some(here) = here {
        let here = here.paths.root.to_string_lossy().into_owned();
        all.retain(|k| k.runner.project_path == here);
    }
    Ok(all)
}

fn unknown(id: &str) -> Report {
    Report::new(ErrorCode::RunnerNotFound, format!("there is no runner {id}")).hint(hints::list_runners())
}
