//! `tenure why`: what blocks a task or the whole project, and the command that solves it.

use std::ffi::OsString;

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::hints::{self, Hint};
use tenure_core::id::TaskId;
use tenure_core::lease::Resource;
use tenure_core::parking::{Parking, Subject};
use tenure_core::why::{Asking, Reason, about_project, about_task};
use tenure_core::wire;
use tenure_runner::preset::{self, PresetError, PresetSource};

use super::usage_view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::identity::{Identity, IdentityArgs};
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Explain why a task or the whole project makes no progress, and what helps
///
/// Example: tenure why F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task (default: the whole project)
    task: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    explain(app, &open, &args.identity, args.task.as_deref())
}

pub(crate) fn explain(
    app: &App<'_>,
    open: &Open<'_>,
    identity_args: &IdentityArgs,
    task: Option<&str>,
) -> CommandResult<Answer> {
    let identity = app.identity(identity_args)?;
    let (subject, reasons, attempts) = asking(app, open, &identity, |asking| match task {
        Some(task) => open.read(|view| {
            let (task, reasons) = about_task(view, asking, task)?;
            let attempts = view.attempts(&Resource::task(&TaskId::new(&task.id)))?;
            Ok((Some(task), reasons, attempts))
        }),
        None => open.read(|view| Ok((None, about_project(view, asking)?, Vec::new()))),
    })?;
    let mut text = Text::new();
    match &subject {
        Some(task) => {
            text.styled(Style::Bold, task.key.clone()).and(Style::Plain, format!(" - {}", task.title));
        }
        None => {
            text.styled(Style::Bold, open.config.project.name.clone().unwrap_or_default());
        }
    }
    for reason in &reasons {
        text.line(format!("  {}", reason.sentence));
    }
    let (last, usage) = (attempts.iter().find_map(wire::last_ending), wire::usage_of(&attempts));
    if let Some(said) = last.as_ref().and_then(|last| last.final_message) {
        text.line("  The agent's final message:");
        text.block(4, said);
    }
    if let Some(used) = usage {
        text.line(format!("  Used: {}", usage_view::sentence(used)));
    }
    let log = attempts.iter().find_map(|attempt| attempt.log_path.as_ref());
    if let Some(log) = log {
        text.line(format!("  Log: {log}"));
    }
    let rows: Vec<_> = reasons
        .iter()
        .map(|r| wire::ReasonJson {
            kind: r.kind,
            reason: &r.sentence,
            first: r.first.as_ref().map(wire::waiter),
        })
        .collect();
    let moving = reasons.iter().all(Reason::is_progress);
    let data = wire::ExplanationJson {
        task: subject.as_ref().map(wire::task_name),
        moving,
        total: rows.len(),
        reasons: rows,
        last_ending: last,
        usage,
    };
    let mut answer = Answer::new(json!(data), text);
    answer.hints = reasons.into_iter().filter_map(|r| r.hint).collect();
    if let (Some(task), Some(_)) = (&subject, log) {
        answer.hints.push(hints::show_agent_log(&task.key));
    }
    Ok(answer)
}

/// Calls `explain` with what this process knows besides the rows of the store.
pub(crate) fn asking<T>(
    app: &App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    explain: impl FnOnce(&Asking<'_>) -> T,
) -> T {
    let (ctx, times, exclusive) = (open.context(), app.local_time(), exclusive(open));
    explain(&Asking {
        ctx: &ctx,
        me: identity.is_named().then_some(&identity.holder),
        claimant: &|task| identity.claimant(Some(task)),
        time: &|at| times.seconds(at),
        exclusive: exclusive.as_ref(),
        remedy: &|parking| remedy_for(app, open, parking),
        no_runner: &|| why_no_runner_starts(app, open),
    })
}

/// Why no runner is started automatically.
fn why_no_runner_starts(app: &App<'_>, open: &Open<'_>) -> Option<Reason> {
    let path = crate::shell_quote::last_arg(&open.paths.root.to_string_lossy());
    let reason = |kind, sentence: &str, hint: Hint| Some(Reason::new(kind, sentence).hint(hint));
    let wakeup = &open.config.runners.wakeup;
    if !wakeup.enabled {
        let sentence = "Wake-up is disabled: runners.wakeup.enabled is false.";
        return reason("wakeup_off", sentence, hints::enable_wakeup());
    }
    let home = app.env.home()?;
    let directory = tenure_sqlite::Directory::open_existing(&home, app.env.clock.clone()).ok()?;
    let known = directory.as_ref().and_then(|directory| directory.project(&open.paths.root).ok().flatten());
    match known {
        None => {
            let sentence = "The project is not registered, so wake-up ignores it.";
            return reason("not_registered", sentence, hints::register(path));
        }
        Some(project) if !project.enabled => {
            let sentence = "Wake-up is disabled for this project.";
            return reason("disabled", sentence, hints::enable_project(path));
        }
        Some(_) => {}
    }
    let last = super::runners::cron::fired(app).ok()?.into_iter().map(|(_, at)| at).max();
    let ago = last.map(|at| app.env.clock.now().since(at));
    if ago.is_some_and(|ago| ago <= super::runners::cron::patience(wakeup.check_interval)) {
        let sentence = "The timer is running; the next wake-up starts a runner.";
        return reason("timer", sentence, hints::wake_up());
    }
    let sentence = match ago {
        Some(ago) => format!("No timer has called wake-up for {}.", format_rounded(ago)),
        None => "No timer calls wake-up, so no runner is started automatically.".to_owned(),
    };
    reason("no_timer", &sentence, hints::install_timer())
}

/// The hint for a preset that is parked because it lacks a permission.
fn remedy_for(app: &App<'_>, open: &Open<'_>, parking: &Parking) -> Option<Hint> {
    let Subject::Preset(name) = &parking.subject else { return None };
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    match preset::resolve(name, &PresetSource::of(&open.config, &open.paths.root, path)) {
        Err(PresetError::Access { source, .. }) => Some(source.hint()),
        _ => None,
    }
}

/// The exclusive lock, which pauses runners.
fn exclusive(open: &Open<'_>) -> Option<Reason> {
    let seen = super::exclusive::blocking_lock(&open.paths.root)?;
    let sentence = format!("The project is locked exclusively: {}; runners are paused.", seen.sentence);
    Some(Reason::new("exclusive", sentence).hint(hints::show_exclusive()))
}
