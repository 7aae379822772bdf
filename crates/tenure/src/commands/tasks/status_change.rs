//! Status changes that need no lease: what `approve`, `reject`, `skip`, `retry` and `reopen` share.

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::rules::{Change, Changed, Seen, change_status, check_seen};
use tenure_core::store::View;
use tenure_core::{Result, wire};
use tenure_runner::hooks::{HookContext, HookFilter};

use super::seen_args::SeenArgs;
use super::several::TasksArg;
use super::view;
use crate::answer::Answer;
use crate::app::{App, Open, read_text};
use crate::commands::lease_view;
use crate::hooks;
use crate::identity::{Identity, IdentityArgs};
use crate::report::CommandResult;
use crate::text::{Style, Text};

#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    tasks: TasksArg,
    /// Do it even if another holder has the task; ends that holder's lease
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// Changes the status and delivers the hooks. `done` is the verb of the answer, and `would` that of a dry run.
pub(super) fn change(
    app: &mut App<'_>,
    args: &ChangeArgs,
    change: Change,
    message: Option<String>,
    done: &str,
    would: &str,
) -> CommandResult<Answer> {
    let message = message.as_deref().map(read_text).transpose()?;
    let identity = app.identity(&args.identity)?;
    let seen = args.seen.seen();
    args.tasks.each(app, ("task", "tasks"), |app, open, task| {
        let name = open.resolve(task)?;
        let change =
            StatusChange { change, message: message.as_deref(), force: args.force, seen: seen.as_ref() };
        let changed = change_one(app, open, &identity, &name, change)?;
        Ok(answer(app, &changed, app.past(done, would)))
    })
}

/// A status change of one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusChange<'a> {
    pub(crate) change: Change,
    pub(crate) message: Option<&'a str>,
    pub(crate) force: bool,
    /// Refuse the change if the task no longer has this state.
    pub(crate) seen: Option<&'a Seen>,
}

/// Changes the status of one task and delivers the hooks.
pub(crate) fn change_one(
    app: &mut App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    name: &TaskName,
    wanted: StatusChange<'_>,
) -> CommandResult<Changed> {
    identity.check_own_task(name)?;
    let caller = identity.actor(Some(&name.id));
    let ctx = open.context();
    let StatusChange { change, message, force, seen } = wanted;
    Ok(hooks::write_and_deliver(app, open, |tx, hook_filter| {
        seen.map_or(Ok(()), |seen| check_seen(tx, name, seen))?;
        let changed = change_status(tx, &ctx, &caller, &name.id, change, message, force)?;
        let hook_contexts = hook_contexts(hook_filter, tx, &changed)?;
        Ok((changed, hook_contexts))
    })?)
}

/// The hook events of a status change: the change itself, and the lease that it ended.
pub(super) fn hook_contexts(
    hook_filter: &HookFilter<'_>,
    view: &dyn View,
    changed: &Changed,
) -> Result<Vec<HookContext>> {
    let mut hook_contexts = hook_filter.changed(view, changed.from, &changed.task)?;
    if let Some(lease) = &changed.evicted {
        hook_contexts.extend(hook_filter.lost(view.now(), &changed.task, lease));
    }
    Ok(hook_contexts)
}

/// `verb` is the change in the past tense.
pub(crate) fn answer(app: &App<'_>, changed: &Changed, verb: &str) -> Answer {
    let task = &changed.task;
    let mut text = Text::new();
    if changed.from == task.status {
        text.styled(Style::Bold, task.key.clone())
            .and(Style::Plain, format!(" was {} already; its status is as before", task.status));
    } else {
        text.line(format!("{verb} "))
            .and(Style::Bold, task.key.clone())
            .and(Style::Plain, format!(": {} → {}", changed.from, task.status));
    }
    if let Some(lease) = &changed.evicted {
        text.styled(
            Style::Warn,
            format!(
                "  this {} the lease of {}",
                app.past("ended", "would end"),
                lease_view::holder_name(lease)
            ),
        );
    }
    let now = app.env.clock.now();
    let evicted = changed.evicted.as_ref().map(|lease| wire::lease(lease, now, app.env.judge.as_ref()));
    let mut data = json!({"task": view::object(app, task), "from": changed.from.as_str()});
    if let (Some(lease), Some(fields)) = (evicted, data.as_object_mut()) {
        fields.insert("endedLease".into(), json!(lease));
    }
    Answer::new(data, text)
}
