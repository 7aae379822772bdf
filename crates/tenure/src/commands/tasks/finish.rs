//! Finishing a held task: what `done`, `fail` and `release` share.

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::kernel::{self, Finish, Finished};
use tenure_core::task::TaskStatus;
use tenure_core::wire::FinishAnswer;

use super::several::TasksArg;
use super::view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Finishes the tasks. `verb` is the command's name, for errors; `done` describes a task afterwards.
pub(super) fn finish_each(
    app: &mut App<'_>,
    tasks: &TasksArg,
    identity_args: &IdentityArgs,
    outcome: Finish<'_>,
    verb: &str,
    done: &str,
) -> CommandResult<Answer> {
    tasks.each(app, ("task", "tasks"), |app, open, task| {
        let name = open.resolve(task)?;
        let finished = finish(app, open, &name, identity_args, outcome, verb)?;
        Ok(answer(app, &finished, outcome, done))
    })
}

/// Finishes the task and delivers the hooks.
pub(crate) fn finish(
    app: &mut App<'_>,
    open: &Open<'_>,
    name: &TaskName,
    identity_args: &IdentityArgs,
    wanted: Finish<'_>,
    verb: &str,
) -> CommandResult<Finished> {
    let caller = app.identity(identity_args)?.for_task(name, verb)?;
    let ctx = open.context();
    let finished = hooks::write_and_deliver(app, open, |tx, hook_filter| {
        let finished = kernel::finish(tx, &ctx, &caller, name, wanted, false)?;
        // Only the holder can finish a task, so it was in progress, even if a clean-up has changed its status since.
        let was = if finished.changed { TaskStatus::InProgress } else { finished.task.status };
        let hook_contexts = hook_filter.changed(tx, was, &finished.task)?;
        Ok((finished, hook_contexts))
    })?;
    Ok(finished)
}

pub(crate) fn answer(app: &App<'_>, finished: &Finished, outcome: Finish<'_>, done: &str) -> Answer {
    let key = &finished.task.key;
    let mut text = Text::new();
    if !finished.changed {
        text.line(format!("{key} was already {done}; nothing changed"));
    } else if matches!(outcome, Finish::Release(_)) {
        text.line(format!("{} task {key}", app.past("Released", "Would release")));
    } else {
        text.line(format!("{} {key} {done}", app.past("Marked", "Would mark")));
    }
    if finished.changed && finished.task.status == TaskStatus::Review {
        text.and(Style::Plain, "; waiting for review");
    }
    let data = FinishAnswer { task: view::object(app, &finished.task), changed: finished.changed };
    Answer::new(json!(data), text)
}
