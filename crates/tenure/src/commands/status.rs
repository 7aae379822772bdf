//! `tenure status`: an overview of the project.

use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::board::{RunnerLine, running_runners};
use tenure_core::hints;
use tenure_core::lease::{LeaseState, ResourceKind};
use tenure_core::store::LeaseFilter;
use tenure_core::task::TaskStatus;
use tenure_core::wire::{self, ProjectJson, RunnerJson, StatusJson};

use super::exclusive;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::follow::Follower;
use crate::identity::IdentityArgs;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Show an overview of the project: tasks by status, agents, claims, waiters
///
/// Example: tenure status --watch
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep showing it as it changes, until Ctrl+C; with --json one object per line
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if args.watch && !app.printer.json && !app.printer.out_is_terminal() {
        return Err(Report::usage("--watch redraws the screen, and standard output is not a terminal")
            .hint(hints::watch_as_json()));
    }
    let open = app.open()?;
    if args.watch {
        return watch(app, &open, &args.identity).map(|()| None);
    }
    show(app, &open, &args.identity).map(Some)
}

/// The shortest time between two redraws.
const PAUSE: Duration = Duration::from_millis(250);

fn watch(app: &mut App<'_>, open: &Open<'_>, identity: &IdentityArgs) -> CommandResult<()> {
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let begun = Instant::now();
    let mut follower = Follower::new(&open.store, PAUSE);
    let mut shown = None;
    loop {
        follower.begin_read()?;
        let answer = show(app, open, identity)?;
        if shown.as_ref() != Some(&answer.data) {
            app.printer.redraw(&answer.data, &answer.text);
            shown = Some(answer.data);
        }
        loop {
            let left = app.global.timeout.map(|limit| limit.saturating_sub(begun.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let woken = follower.wait(&[interrupts.fd()], left);
            if let Some(code) = interrupts.caught() {
                return Err(Report::interrupted(code).silent());
            }
            if woken.changed {
                break;
            }
        }
    }
}

/// `tenure` without a command.
pub(crate) fn bare(app: &mut App<'_>) -> CommandResult<Answer> {
    match app.open() {
        Ok(open) => show(app, &open, &IdentityArgs::default()),
        Err(report) if report.code == ErrorCode::NotInitialized => Ok(welcome()),
        Err(report) => Err(report),
    }
}

fn welcome() -> Answer {
    let mut text = Text::new();
    text.styled(
        Style::Bold,
        "tenure decides who holds a piece of work, for how long, and what happens when the holder vanishes.",
    );
    text.blank();
    text.line("There is no project here yet.");
    Answer::new(json!({"project": null}), text).hint(hints::init()).hint(hints::demo()).hint(hints::help())
}

pub(crate) fn show(app: &App<'_>, open: &Open<'_>, identity_args: &IdentityArgs) -> CommandResult<Answer> {
    let identity = app.identity(identity_args)?;
    let judge = app.env.judge.as_ref();
    let (counts, agents, leases, waiting, ready, runners, parked, now) = open.read(|view| {
        let viewer = open.viewer(view, &identity)?;
        let filter = LeaseFilter { kinds: Some(vec![ResourceKind::Task]), ..LeaseFilter::default() };
        Ok((
            view.count_tasks()?,
            view.agents()?,
            view.leases(&filter)?,
            view.count_tickets()?,
            view.next_ready(None, &viewer)?,
            running_runners(view, judge)?,
            view.parked()?,
            view.now(),
        ))
    })?;
    let next = match ready {
        Some(id) => Some(open.resolve(id.as_str())?),
        None => None,
    };
    let active = leases.iter().filter(|l| l.state(now, judge) == LeaseState::Live).count();
    let lapsed = leases.len() - active;
    let registered = agents.iter().filter(|a| a.left_at.is_none()).count();
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let total: u64 = counts.iter().map(|(_, n)| n).sum();
    let exclusive = exclusive::blocking_lock(&open.paths.root);

    let name = open.config.project.name.clone();
    let mut text = Text::new();
    text.styled(Style::Bold, name.clone().unwrap_or_default())
        .and(Style::Dim, format!("  {}", open.paths.root.display()));
    if open.source.is_on_server() {
        text.styled(Style::Dim, format!("Store: {}", open.source.shown()));
    }
    text.blank();
    text.styled(Style::Bold, "Tasks");
    for status in TaskStatus::ALL {
        if count(status) > 0 || matches!(status, TaskStatus::Pending | TaskStatus::Completed) {
            text.line(format!("  {:<12}{}", status.label(), count(status)));
        }
    }
    if let Some(task) = &next {
        text.line(format!("  Next ready: {} {}", task.key, task.title));
    }
    text.blank();
    text.styled(Style::Bold, "Runtime");
    text.line(format!("  Agents registered: {registered}"));
    text.line(format!("  Active claims: {active}"));
    if lapsed > 0 {
        text.styled(Style::Warn, format!("  Lapsed claims: {lapsed}"));
    }
    if waiting > 0 {
        text.line(format!("  Waiting in queue: {waiting}"));
    }
    for runner in &runners {
        text.line(format!("  Runner {}", runner.sentence()));
    }
    for parking in &parked {
        text.styled(Style::Warn, format!("  {}", parking.sentence(now)));
    }
    if let Some(seen) = &exclusive {
        text.styled(Style::Warn, format!("  Exclusive lock: {}", seen.sentence));
    }

    let data = StatusJson {
        project: ProjectJson {
            path: &open.paths.root,
            name: name.as_deref(),
            id: open.config.project.id.map(|id| id.to_string()),
        },
        tasks: TaskStatus::ALL.into_iter().map(|status| (status, count(status))).collect(),
        total,
        next_ready: next.as_ref().map(|task| task.key.as_str()),
        agents_registered: registered,
        active_claims: active,
        lapsed_claims: lapsed,
        waiting,
        runners: runners.iter().map(runner_object).collect(),
        parked: parked.iter().map(wire::parked).collect(),
        exclusive_lock: exclusive.map(|seen| seen.object),
    };
    let answer = Answer::new(json!(data), text);
    Ok(if total == 0 { answer.hint(hints::add_task()) } else { answer })
}

fn runner_object(line: &RunnerLine) -> RunnerJson<'_> {
    RunnerJson { alive: Some(line.alive), ..wire::runner(&line.runner, line.section.as_deref()) }
}
