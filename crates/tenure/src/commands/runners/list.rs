//! `tenure runners list`.

use serde_json::{Value, json};
use tenure_core::Timestamp;
use tenure_core::holder::Liveness;
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_sqlite::{Directory, KnownRunner};

use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;
use crate::text::{Style, Table, Text};

/// List runners of all projects on this machine, and of this project on all machines
///
/// Example: tenure runners list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// How many of those that have ended to show as well
    #[arg(long, value_name = "N", default_value_t = 0)]
    ended: usize,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let home = app.home()?;
    let mut all = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => known(app, &directory)?,
        None => Vec::new(),
    };
    let others = on_other_machines(app, &all)?;
    all.extend(others);
    let (running, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|k| !k.runner.status.is_over());
    let shown: Vec<KnownRunner> = running.into_iter().chain(ended.into_iter().take(args.ended)).collect();

    let mut text = Text::new();
    if shown.is_empty() {
        text.line("No runners.");
    } else {
        text.styled(Style::Bold, "RUNNERS");
        // The host is shown only if there are several.
        let far = shown.iter().any(|known| known.runner.process.hostname != app.env.hostname);
        let mut heads = vec!["ID", "STATUS", "PID", "PROJECT", "SECTION", "HEARTBEAT"];
        if far {
            heads.insert(3, "HOST");
        }
        let mut table = Table::new(&heads);
        for known in &shown {
            let runner = &known.runner;
            let mut cells = vec![
                (Style::Plain, runner.id.chars().take(8).collect()),
                (style(runner.status), runner.status.as_str().to_owned()),
                (Style::Plain, runner.process.process.pid.to_string()),
                (Style::Plain, runner.project_path.clone()),
                (Style::Plain, known.section_name.clone().unwrap_or_else(|| "-".to_owned())),
                (Style::Plain, time_of_day(runner.heartbeat_at)),
            ];
            if far {
                cells.insert(3, (Style::Plain, runner.process.hostname.clone()));
            }
            table.styled_row(cells);
        }
        text.table(&table, app.printer.look());
    }
    warn_of_other_projects(app, &shown, &mut text);
    let rows: Vec<Value> = shown.iter().map(|known| object(app, known)).collect();
    Ok(Answer::new(json!({"runners": rows, "total": rows.len()}), text))
}

/// This project's runners on other machines, if they share its store.
fn on_other_machines(app: &mut App<'_>, here: &[KnownRunner]) -> Outcome<Vec<KnownRunner>> {
    let Ok(project) = app.find() else { return Ok(Vec::new()) };
    if !app.source(&project.paths, project.config.as_ref().map_err(Clone::clone)?)?.is_on_server() {
        return Ok(Vec::new());
    }
    let open = app.open_at(project)?;
    let others = open.read(|view| {
        let mut others = Vec::new();
        for runner in view.runners(0)? {
            if here.iter().any(|known| known.runner.id == runner.id) {
                continue;
            }
            let section = runner.section.as_ref().map(|id| view.section(id)).transpose()?.flatten();
            others.push(KnownRunner { runner, section_name: section.map(|section| section.name) });
        }
        Ok(others)
    })?;
    Ok(others)
}

/// The runners of the directory, with dead ones marked as failed.
pub(super) fn known(app: &App<'_>, directory: &Directory) -> Outcome<Vec<KnownRunner>> {
    let mut all = directory.runners()?;
    for known in &mut all {
        let runner = &mut known.runner;
        if !runner.status.is_over() && app.env.judge.liveness(&runner.process) == Liveness::Dead {
            runner.status = RunnerStatus::Failed;
            runner.current_task = None;
            runner.completed_at = Some(app.env.clock.now());
            runner.error = Some("its process is gone".to_owned());
            if !app.global.dry_run {
                // The list is correct even if the directory cannot be written.
                let _ = directory.save_runner(known);
            }
        }
    }
    Ok(all)
}

fn style(status: RunnerStatus) -> Style {
    match status {
        RunnerStatus::Running => Style::Good,
        RunnerStatus::Failed => Style::Bad,
        RunnerStatus::Idle | RunnerStatus::Completed => Style::Plain,
    }
}

fn time_of_day(at: Timestamp) -> String {
    at.to_seconds().get(11..19).unwrap_or_default().to_owned()
}

fn warn_of_other_projects(app: &App<'_>, shown: &[KnownRunner], text: &mut Text) {
    let mut projects: Vec<&str> =
        shown.iter().filter(|k| !k.runner.status.is_over()).map(|k| k.runner.project_path.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    if projects.len() < 2 {
        return;
    }
    text.blank();
    text.styled(
        Style::Warn,
        format!("⚠️  MULTI-PROJECT WARNING: {} different projects have runners.", projects.len()),
    );
    if let Ok(project) = app.find() {
        text.line(format!("   Your current project: {}", project.paths.root.display()));
    }
    text.line("   DO NOT modify files in other projects.");
}

pub(super) fn object(app: &App<'_>, known: &KnownRunner) -> Value {
    let mut object = runner_object(&known.runner, known.section_name.as_deref());
    let alive = match app.env.judge.liveness(&known.runner.process) {
        Liveness::Alive => Some(true),
        Liveness::Dead => Some(false),
        Liveness::Unknown => None,
    };
    if let Some(fields) = object.as_object_mut() {
        fields.insert("alive".into(), json!(alive));
    }
    object
}

pub(in crate::commands) fn runner_object(runner: &Runner, section: Option<&str>) -> Value {
    json!({
        "id": runner.id,
        "status": runner.status.as_str(),
        "pid": runner.process.process.pid,
        "host": runner.process.hostname,
        "projectPath": runner.project_path,
        "section": section,
        "currentTask": runner.current_task,
        "startedAt": runner.started_at,
        "completedAt": runner.completed_at,
        "lastHeartbeat": runner.heartbeat_at,
        "error": runner.error,
        "logPath": runner.log_path,
    })
}
