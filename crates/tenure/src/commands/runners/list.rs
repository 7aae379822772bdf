//! `tenure runners list`.

use serde_json::json;
use tenure_core::hints;
use tenure_core::holder::Liveness;
use tenure_core::runner::RunnerStatus;
use tenure_core::wire;
use tenure_sqlite::{Directory, KnownRunner};

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, cut, cut_start, keep};
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// List the runners of all projects on this machine, and of this project on all machines
///
/// Example: tenure runners list
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Also show this many ended runners
    #[arg(long, value_name = "N", default_value_t = 0)]
    ended: usize,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let home = app.home()?;
    let mut all = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => known(app, &directory)?,
        None => Vec::new(),
    };
    let others = on_other_machines(app, &all)?;
    all.extend(others);
    let (running, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|k| !k.runner.status.is_over());
    let has_more = ended.len() > args.ended;
    let shown: Vec<KnownRunner> = running.into_iter().chain(ended.into_iter().take(args.ended)).collect();

    let mut text = Text::new();
    if shown.is_empty() {
        text.line("No runners.");
    } else {
        text.styled(Style::Bold, "RUNNERS");
        // The host is shown only if a runner is on another one.
        let has_remote = shown.iter().any(|known| known.runner.process.hostname != app.env.hostname);
        let mut columns = vec![
            keep("ID"),
            keep("STATUS"),
            keep("PID"),
            cut_start("PROJECT"),
            cut("SECTION"),
            keep("HEARTBEAT"),
        ];
        if has_remote {
            columns.insert(3, cut("HOST"));
        }
        let mut table = Table::new(columns).ruled();
        let ids = ShortIds::of(shown.iter().map(|known| known.runner.id.as_str()));
        let time = app.local_time();
        for known in &shown {
            let runner = &known.runner;
            let mut cells = vec![
                (Style::Plain, ids.show(&runner.id).to_owned()),
                (style(runner.status), runner.status.as_str().to_owned()),
                (Style::Plain, runner.process.process.pid.to_string()),
                (Style::Plain, runner.project_path.clone()),
                (Style::Plain, known.section_name.clone().unwrap_or_else(|| "-".to_owned())),
                (Style::Plain, time.time_of_day(runner.heartbeat_at)),
            ];
            if has_remote {
                cells.insert(3, (Style::Plain, runner.process.hostname.clone()));
            }
            table.styled_row(cells);
        }
        text.table(&table, app.printer.render_options());
    }
    warn_of_other_projects(app, &shown, &mut text);
    let rows: Vec<_> = shown.iter().map(|known| object(app, known)).collect();
    let answer = Answer::new(json!({"runners": rows, "total": rows.len()}), text);
    Ok(if rows.is_empty() && has_more { answer.hint(hints::list_ended_runners()) } else { answer })
}

/// The project's runners on other machines, if its store is on a server.
fn on_other_machines(app: &mut App<'_>, here: &[KnownRunner]) -> CommandResult<Vec<KnownRunner>> {
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

/// The runners in the directory. A runner that turns out to be dead is marked as failed, there too.
pub(super) fn known(app: &App<'_>, directory: &Directory) -> CommandResult<Vec<KnownRunner>> {
    let mut all = directory.runners()?;
    for known in &mut all {
        let runner = &mut known.runner;
        if !runner.status.is_over() && app.env.judge.liveness(&runner.process) == Liveness::Dead {
            runner.status = RunnerStatus::Failed;
            runner.current_task = None;
            runner.completed_at = Some(app.env.clock.now());
            runner.error = Some("its process has died".to_owned());
            if !app.global.dry_run {
                // Best effort: the list is correct even if the directory cannot be written.
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

pub(super) fn object<'r>(app: &App<'_>, known: &'r KnownRunner) -> wire::RunnerJson<'r> {
    let liveness = app.env.judge.liveness(&known.runner.process);
    let runner = wire::runner(&known.runner, known.section_name.as_deref());
    wire::RunnerJson { alive: Some(wire::alive(liveness)), ..runner }
}
