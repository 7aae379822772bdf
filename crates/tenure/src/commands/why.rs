//! `tenure why`: what blocks a task or the whole project, and the command that helps.

use std::ffi::OsString;

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::error::{QueuedWaiter, SectionInUse, TaskName};
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::{Lease, LeaseState, Resource};
use tenure_core::parking::{Parking, Subject};
use tenure_core::store::{LeaseFilter, TaskFilter, View};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{Error, Timestamp, reference, wire};
use tenure_runner::preset::{self, PresetError, PresetSource};

use super::{lease_view, runner_view, usage_view};
use crate::answer::{Answer, Hint};
use crate::app::{App, Open};
use crate::identity::{Identity, IdentityArgs};
use crate::report::CommandResult;
use crate::shell_quote::quote;
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

/// One reason why there is no progress.
#[derive(Debug)]
struct Reason {
    kind: &'static str,
    sentence: String,
    hint: Option<Hint>,
    /// The first waiter, if a queue is in the way.
    first: Option<QueuedWaiter>,
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
    let (subject, mut reasons, attempts) = match task {
        Some(task) => {
            let (task, reasons, attempts) = open.read(|view| {
                let (task, reasons) = about_task(view, app, open, &identity, task)?;
                let attempts = view.attempts(&Resource::task(&TaskId::new(&task.id)))?;
                Ok((task, reasons, attempts))
            })?;
            (Some(task), reasons, attempts)
        }
        None => (None, open.read(|view| about_project(view, app, open, &identity))?, Vec::new()),
    };
    let exclusive = exclusive(open);
    // Under an exclusive lock no runner can be started.
    if exclusive.is_none() && reasons.iter().any(|r| r.kind == "ready" || r.kind == "review") {
        reasons.extend(open.read(|view| why_not_claimed(view, app, open, &identity))?);
    }
    if reasons.iter().any(|r| r.kind == "no_runner") {
        reasons.extend(why_no_runner_starts(app, open));
    }
    if let Some(reason) = exclusive {
        reasons.insert(0, reason);
    }
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
    let moving = reasons
        .iter()
        .all(|r| matches!(r.kind, "ready" | "reserved" | "held" | "finished" | "no_runner" | "no_timer"));
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
        answer.hints.push(Hint::new("see what its agent did", format!("tenure tasks logs {}", task.key)));
    }
    Ok(answer)
}

fn about_task(
    view: &dyn View,
    app: &App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    reference: &str,
) -> tenure_core::Result<(TaskName, Vec<Reason>)> {
    let viewer = open.viewer(view, identity)?;
    let name = reference::task(view, reference)?;
    let id = TaskId::new(&name.id);
    let task = view.task(&id, &viewer)?.ok_or_else(|| Error::TaskNotFound { reference: name.key.clone() })?;
    let key = &task.key;
    let mut reasons = Vec::new();
    let over = match task.status {
        TaskStatus::Completed => Some(("finished", "It is completed.".to_owned(), None)),
        TaskStatus::Skipped => Some((
            "finished",
            "It was skipped.".to_owned(),
            Some(Hint::new("reopen it", format!("tenure tasks retry {key}"))),
        )),
        TaskStatus::Failed => Some((
            "failed",
            "It has failed and cannot be claimed.".to_owned(),
            Some(Hint::new("reopen it", format!("tenure tasks retry {key}"))),
        )),
        TaskStatus::Review => Some((
            "review",
            "It is waiting for review.".to_owned(),
            Some(Hint::new("approve it", format!("tenure tasks approve {key}"))),
        )),
        TaskStatus::Pending | TaskStatus::InProgress => None,
    };
    if let Some((kind, mut sentence, hint)) = over {
        if matches!(task.status, TaskStatus::Failed | TaskStatus::Review) {
            let last = view.attempts(&Resource::task(&id))?.into_iter().find(|a| a.run.is_some());
            if let Some(why) = last.and_then(|attempt| attempt.reason) {
                sentence = format!("{sentence} The last attempt: {why}.");
            }
        }
        reasons.push(Reason { kind, sentence, hint, first: None });
        return Ok((name, reasons));
    }
    if let Some(lease) = &task.lease {
        let waiting = kernel::count_before(view, &viewer, &Resource::task(&id), None)?;
        reasons.push(held(app, lease, "It", view.now(), waiting, key));
    }
    for blocker in &task.blocked_by {
        reasons.push(match blocker.strip_prefix("section:") {
            Some(section) => Reason {
                kind: "section_dependency",
                sentence: format!("Its section is blocked by section {section}."),
                hint: Some(Hint::new(
                    "see its tasks",
                    format!("tenure sections show {}", crate::shell_quote::last_arg(section)),
                )),
                first: None,
            },
            None => Reason {
                kind: "dependency",
                sentence: format!("It is blocked by {blocker}."),
                hint: Some(Hint::new("see why", format!("tenure why {blocker}"))),
                first: None,
            },
        });
    }
    reasons.extend(section_in_the_way(view, app, identity, &task)?);
    if reasons.is_empty() {
        let terms = Terms::new(open.config.locking.lease_ttl);
        let caller = identity.claimant(Some(&name));
        let locked = kernel::in_the_way(view, &open.context(), &caller, &task, &terms)?;
        reasons.push(if let Some(first) = locked.and_then(|locked| locked.first) {
            let sentence = format!("It is ready, but reserved for a waiter: {first}.");
            Reason { kind: "reserved", sentence, hint: None, first: Some(*first) }
        } else {
            Reason {
                kind: "ready",
                sentence: "It is ready to be claimed.".to_owned(),
                hint: Some(Hint::new("claim it", format!("tenure tasks claim {key}"))),
                first: None,
            }
        });
    }
    Ok((name, reasons))
}

fn section_in_the_way(
    view: &dyn View,
    app: &App<'_>,
    identity: &Identity,
    task: &Task,
) -> tenure_core::Result<Option<Reason>> {
    let Some(section) = task.section.as_ref().filter(|s| s.serial) else { return Ok(None) };
    let Some(lease) = view.open_lease(&Resource::section(&section.id))? else { return Ok(None) };
    let mine =
        lease.held_by(&identity.holder) || task.lease.as_ref().is_some_and(|l| l.holder == lease.holder);
    if mine || lease.state(view.now(), app.env.judge.as_ref()) != LeaseState::Live {
        return Ok(None);
    }
    let rest = format_rounded(lease.expires_at.since(view.now()));
    Ok(Some(Reason {
        kind: "section_held",
        sentence: format!(
            "Its section {} is held by {} for at most another {rest}.",
            section.name,
            lease_view::holder(&lease)
        ),
        hint: Some(Hint::new("wait for it", format!("tenure tasks claim {} --wait", task.key))),
        first: None,
    }))
}

fn serial_section(section: &SectionInUse, now: Timestamp) -> Reason {
    let waits = match section.pending {
        1 => "1 pending task waits".to_owned(),
        tasks => format!("{tasks} pending tasks wait"),
    };
    Reason {
        kind: "section_held",
        sentence: format!(
            "Section {} is serial: while {} works in it, for at most another {}, its {waits}.",
            section.name,
            section.holder,
            format_rounded(section.expires_at.since(now)),
        ),
        hint: Some(Hint::new(
            "let several work in it",
            format!("tenure sections update {} --parallel", quote(&section.name)),
        )),
        first: None,
    }
}

fn held(app: &App<'_>, lease: &Lease, what: &str, now: Timestamp, waiting: usize, key: &str) -> Reason {
    let who = lease_view::holder(lease);
    match lease.state(now, app.env.judge.as_ref()) {
        LeaseState::Live => Reason {
            kind: "held",
            sentence: format!(
                "{what} has been held by {who} since {}, for at most another {}{}.",
                app.local_time().seconds(lease.acquired_at),
                format_rounded(lease.expires_at.since(now)),
                if waiting > 0 { format!("; {waiting} waiting") } else { String::new() }
            ),
            hint: Some(Hint::new("wait for it", format!("tenure tasks claim {key} --wait"))),
            first: None,
        },
        _ => Reason {
            kind: "lapsed",
            sentence: format!(
                "{what} was held by {who}; the lease has lapsed ({}).",
                lease_view::remaining(lease, now, app.env.judge.as_ref())
            ),
            hint: Some(Hint::new("take it over", format!("tenure tasks claim {key}"))),
            first: None,
        },
    }
}

fn about_project(
    view: &dyn View,
    app: &App<'_>,
    open: &Open<'_>,
    identity: &Identity,
) -> tenure_core::Result<Vec<Reason>> {
    let viewer = open.viewer(view, identity)?;
    let counts = view.count_tasks()?;
    let count = |status: TaskStatus| counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
    let open_tasks = count(TaskStatus::Pending) + count(TaskStatus::InProgress);
    let mut reasons = Vec::new();
    let ctx = open.context();
    if let Some(id) = kernel::next_for_newcomer(view, &ctx, &viewer, None)? {
        let name = reference::task(view, id.as_str())?;
        reasons.push(Reason {
            kind: "ready",
            sentence: format!("{} is ready: {}", name.key, name.title),
            hint: Some(Hint::new("claim it", "tenure tasks next --claim")),
            first: None,
        });
    }
    if let Some(work) = kernel::reserved_work(view, &ctx, None, None)? {
        reasons.push(Reason {
            kind: "reserved",
            sentence: format!("{work}; first in the queue: {}.", work.first),
            hint: None,
            first: Some(work.first),
        });
    }
    let leases = view.leases(&LeaseFilter {
        kinds: Some(vec![tenure_core::lease::ResourceKind::Task]),
        ..LeaseFilter::default()
    })?;
    if reasons.is_empty() && open_tasks > 0 {
        let held = leases.iter().filter(|l| l.state(view.now(), app.env.judge.as_ref()) == LeaseState::Live);
        reasons.push(nothing_ready(open_tasks, u64::try_from(held.count()).unwrap_or(0)));
    }
    let in_use = kernel::sections_in_use(view, &ctx, None, &viewer)?;
    reasons.extend(in_use.iter().map(|section| serial_section(section, view.now())));
    for lease in leases.iter().take(20) {
        let key = lease_view::resource_name(view, &lease.resource)?;
        let waiting = kernel::count_before(view, &viewer, &lease.resource, None)?;
        reasons.push(held(app, lease, &key, view.now(), waiting, &key));
    }
    if leases.is_empty() && reasons.iter().any(|r| r.kind == "nothing_ready") {
        let filter =
            TaskFilter { statuses: Some(vec![TaskStatus::Pending]), limit: 10, ..TaskFilter::default() };
        for task in view.list_tasks(&filter, &viewer)?.0 {
            reasons.push(Reason {
                kind: "blocked",
                sentence: format!("{} is blocked by {}.", task.key, task.blocked_by.join(", ")),
                hint: Some(Hint::new("see why", format!("tenure why {}", task.key))),
                first: None,
            });
        }
    }
    for (status, verb) in [(TaskStatus::Review, "approve"), (TaskStatus::Failed, "retry")] {
        if count(status) > 0 {
            let filter = TaskFilter { statuses: Some(vec![status]), limit: 1, ..TaskFilter::default() };
            let first = view.list_tasks(&filter, &viewer)?.0.into_iter().next();
            reasons.push(Reason {
                kind: if status == TaskStatus::Review { "review" } else { "failed" },
                sentence: match (status, count(status)) {
                    (TaskStatus::Review, 1) => "1 task is waiting for review.".to_owned(),
                    (TaskStatus::Review, n) => format!("{n} tasks are waiting for review."),
                    (_, 1) => "1 task has failed.".to_owned(),
                    (_, n) => format!("{n} tasks have failed."),
                },
                hint: first.map(|t| Hint::new("for example", format!("tenure tasks {verb} {}", t.key))),
                first: None,
            });
        }
    }
    if reasons.is_empty() {
        let all: u64 = counts.iter().map(|(_, n)| n).sum();
        reasons.push(if all == 0 {
            Reason {
                kind: "empty",
                sentence: "There are no tasks.".to_owned(),
                hint: Some(Hint::new("add one", "tenure tasks add 'Fix the login page'")),
                first: None,
            }
        } else {
            Reason {
                kind: "finished",
                sentence: "Everything is finished.".to_owned(),
                hint: None,
                first: None,
            }
        });
    }
    Ok(reasons)
}

/// The summary if nothing is ready: every open task is held or blocked.
fn nothing_ready(open: u64, held: u64) -> Reason {
    let count = |n: u64, one: &str, many: &str| {
        if n == 1 { format!("1 task {one}") } else { format!("{n} tasks {many}") }
    };
    let sentence = match (held, open.saturating_sub(held)) {
        (held, 0) => format!("Nothing is ready: {}.", count(held, "is held", "are held")),
        (0, blocked) => {
            format!("Nothing is ready: {}.", count(blocked, "is blocked", "are blocked"))
        }
        (held, blocked) => format!(
            "Nothing is ready: {}, {}.",
            count(held, "is held", "are held"),
            count(blocked, "is blocked", "are blocked")
        ),
    };
    Reason { kind: "nothing_ready", sentence, hint: None, first: None }
}

/// Why no runner is started automatically.
fn why_no_runner_starts(app: &App<'_>, open: &Open<'_>) -> Option<Reason> {
    let path = crate::shell_quote::last_arg(&open.paths.root.to_string_lossy());
    let reason = |kind, sentence: &str, why: &str, command: String| {
        Some(Reason { kind, sentence: sentence.to_owned(), hint: Some(Hint::new(why, command)), first: None })
    };
    let wakeup = &open.config.runners.wakeup;
    if !wakeup.enabled {
        let command = "tenure config set runners.wakeup.enabled true".to_owned();
        return reason(
            "wakeup_off",
            "Wake-up is disabled: runners.wakeup.enabled is false.",
            "enable it",
            command,
        );
    }
    let home = app.env.home()?;
    let directory = tenure_sqlite::Directory::open_existing(&home, app.env.clock.clone()).ok()?;
    let known = directory.as_ref().and_then(|directory| directory.project(&open.paths.root).ok().flatten());
    match known {
        None => {
            let command = format!("tenure projects add {path}");
            return reason(
                "not_registered",
                "The project is not registered, so wake-up ignores it.",
                "register it",
                command,
            );
        }
        Some(project) if !project.enabled => {
            let command = format!("tenure projects enable {path}");
            return reason("disabled", "Wake-up is disabled for this project.", "enable it again", command);
        }
        Some(_) => {}
    }
    let last = super::runners::cron::fired(app).ok()?.into_iter().map(|(_, at)| at).max();
    let ago = last.map(|at| app.env.clock.now().since(at));
    if ago.is_some_and(|ago| ago <= super::runners::cron::patience(wakeup.check_interval)) {
        let sentence = "The timer is running; the next wake-up starts a runner.";
        return reason("timer", sentence, "run wake-up now", "tenure runners wakeup".to_owned());
    }
    let sentence = match ago {
        Some(ago) => format!("No timer has called wake-up for {}.", format_rounded(ago)),
        None => "No timer calls wake-up, so no runner is started automatically.".to_owned(),
    };
    reason("no_timer", &sentence, "install one", "tenure runners cron install".to_owned())
}

/// Why a ready task is not claimed by a runner.
fn why_not_claimed(
    view: &dyn View,
    app: &App<'_>,
    open: &Open<'_>,
    identity: &Identity,
) -> tenure_core::Result<Vec<Reason>> {
    let viewer = open.viewer(view, identity)?;
    let mut reasons: Vec<Reason> = Vec::new();
    for parking in view.parked()? {
        let remedy = remedy_for(app, open, &parking);
        reasons.push(Reason {
            kind: "parked",
            sentence: format!("{}.", runner_view::parked_line(&parking, view.now())),
            hint: Some(
                remedy.unwrap_or_else(|| Hint::new("to try it now, start a runner", "tenure runners start")),
            ),
            first: None,
        });
    }
    if reasons.is_empty() && runner_view::runners(view, app.env.judge.as_ref(), &viewer)?.is_empty() {
        reasons.push(Reason {
            kind: "no_runner",
            sentence: "No runner is running in this project.".to_owned(),
            hint: Some(Hint::new("start a runner", "tenure runners start")),
            first: None,
        });
    }
    Ok(reasons)
}

/// What helps if a preset is parked because it lacks a permission.
fn remedy_for(app: &App<'_>, open: &Open<'_>, parking: &Parking) -> Option<Hint> {
    let Subject::Preset(name) = &parking.subject else { return None };
    let path = app.env.vars.get(&OsString::from("PATH")).map(OsString::as_os_str);
    match preset::resolve(name, &PresetSource::of(&open.config, &open.paths.root, path)) {
        Err(PresetError::Access { source, .. }) => {
            let (what, command) = source.remedy();
            Some(Hint::new(what, command))
        }
        _ => None,
    }
}

/// The exclusive lock, which pauses runners.
fn exclusive(open: &Open<'_>) -> Option<Reason> {
    let seen = super::exclusive::blocking_lock(&open.paths.root)?;
    Some(Reason {
        kind: "exclusive",
        sentence: format!("The project is locked exclusively: {}; runners are paused.", seen.sentence),
        hint: Some(Hint::new("see the holder", "tenure exclusive status")),
        first: None,
    })
}
