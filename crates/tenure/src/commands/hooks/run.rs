//! `tenure hooks run`.

use serde_json::{Value, json};
use tenure_core::config::{Hook, HookEvent};
use tenure_core::hints;
use tenure_core::id::TaskId;
use tenure_core::task::Task;
use tenure_core::{Error, ErrorCode, wire};
use tenure_runner::hooks::{HookContext, preview, run as run_hook};

use super::{describe, each, parse_event, refuse_if_off, would_run};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::hooks::not_run;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Run all hooks of an event now, as if it had just happened
///
/// Waits for async hooks too. Exits 1 if a hook fails.
///
/// Example: tenure hooks run task.completed --task F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The event
    #[arg(value_name = "EVENT", value_parser = parse_event)]
    event: HookEvent,
    /// The event's task, or a task of the completed section
    #[arg(long, value_name = "T")]
    task: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    refuse_if_off(app)?;
    let open = app.open()?;
    let task = args.task.as_deref().map(|task| read_task(app, &open, task, &args.identity)).transpose()?;
    let context = context_of(app, &open, args.event, task.as_ref())?;
    let hooks: Vec<&Hook> = open.config.hooks.iter().filter(|hook| hook.event == args.event).collect();
    if open.config.ignored_hooks.iter().any(|hook| hook.event == args.event) {
        app.printer.warn(&not_run(&open.paths));
    }
    let mut text = Text::new();
    if hooks.is_empty() {
        text.line(format!("No hooks for {}.", args.event));
    }
    if app.global.dry_run {
        let mut rows = Vec::new();
        for (hook, shown) in hooks.iter().zip(each(app, &open, &hooks, &context, preview)) {
            match shown {
                Ok(shown) => {
                    text.line(would_run(&shown));
                    rows.push(shown);
                }
                Err(failure) => {
                    text.line(format!("{} would fail: {failure}", hook.name));
                    rows.push(json!({"hook": hook.name, "error": failure.to_string()}));
                }
            }
        }
        return Ok(Answer::new(json!({"results": rows, "total": hooks.len()}), text));
    }
    let outcomes = each(app, &open, &hooks, &context, run_hook);
    let rows: Vec<Value> = outcomes.iter().map(tenure_runner::hooks::Outcome::to_json).collect();
    let data = json!({"results": rows, "total": rows.len()});
    let failed = outcomes.iter().filter(|outcome| outcome.failure().is_some()).count();
    if failed > 0 {
        let mut report =
            Report::new(ErrorCode::HookFailed, format!("{failed} of {} hooks failed", rows.len()));
        report.context = outcomes.iter().filter_map(tenure_runner::hooks::Outcome::warning).collect();
        *report.details = data;
        return Err(report);
    }
    for outcome in &outcomes {
        describe(&mut text, outcome);
    }
    Ok(Answer::new(data, text))
}

fn read_task(
    app: &App<'_>,
    open: &Open<'_>,
    reference: &str,
    identity_args: &IdentityArgs,
) -> CommandResult<Task> {
    let identity = app.identity(identity_args)?;
    Ok(open.read(|view| {
        let viewer = open.viewer(view, &identity)?;
        let name = tenure_core::reference::task(view, reference)?;
        view.task(&TaskId::new(&name.id), &viewer)?.ok_or(Error::TaskNotFound { reference: name.key })
    })?)
}

fn context_of(
    app: &App<'_>,
    open: &Open<'_>,
    event: HookEvent,
    task: Option<&Task>,
) -> CommandResult<HookContext> {
    let (now, judge) = (app.env.clock.now(), app.env.judge.as_ref());
    let context = HookContext::new(event, now);
    let missing =
        || Report::usage(format!("{event} needs a task: give one with --task")).hint(hints::list_tasks());
    match event {
        HookEvent::ProjectCompleted => Ok(context),
        HookEvent::RunnerStarted | HookEvent::RunnerStopped | HookEvent::RunnerFailed => Err(Report::usage(
            format!("{event} is an event of runners; use `tenure hooks test` to try a hook"),
        )
        .hint(hints::list_hooks())),
        HookEvent::SectionCompleted => {
            let section = task.ok_or_else(missing)?.section.as_ref();
            let id = section.ok_or_else(|| Report::usage("that task has no section"))?.id.clone();
            let section = open.read(|view| view.section(&id))?;
            Ok(context.with("section", section.as_ref().map(|section| wire::section(section, now, judge))))
        }
        HookEvent::LeaseLost => {
            let task = task.ok_or_else(missing)?;
            let lease = task.lease.as_ref().map(|lease| wire::lease(lease, now, judge));
            Ok(context.with("task", wire::task(task, now, judge)).with("lease", lease))
        }
        _ => Ok(context.with("task", wire::task(task.ok_or_else(missing)?, now, judge))),
    }
}
