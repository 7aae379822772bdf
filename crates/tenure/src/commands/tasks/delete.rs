//! `tenure tasks delete`.

use tenure_core::rules::delete_task;

use super::several::TasksArg;
use super::view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::lease_view;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Delete a task; its history is kept
///
/// Example: tenure tasks delete F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tasks: TasksArg,
    /// Do it even if another holder has the task; ends that holder's lease
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    args.tasks.each(app, ("task", "tasks"), |app, open, task| delete(app, open, task, &args))
}

fn delete(app: &mut App<'_>, open: &Open<'_>, task: &str, args: &Args) -> CommandResult<Answer> {
    let identity = app.identity(&args.identity)?;
    let name = open.resolve(task)?;
    let caller = identity.actor(Some(&name.id));
    let ctx = open.context();
    let task = hooks::write_and_deliver(app, open, |tx, hook_filter| {
        let task = delete_task(tx, &ctx, &caller, &name.id, args.force)?;
        let hook_contexts = hook_filter.deleted(tx, &task)?;
        Ok((task, hook_contexts))
    })?;
    let mut text = Text::new();
    text.line(format!("{} {}  {}", app.past("Deleted", "Would delete"), task.key, task.title));
    let mut data = view::data(app, &task);
    if let Some(lease) = &task.lease {
        text.styled(
            Style::Warn,
            format!(
                "  this {} the lease of {}",
                app.past("ended", "would end"),
                lease_view::holder_name(lease)
            ),
        );
        data["endedLease"] = data["task"]["lease"].clone();
    }
    Ok(Answer::new(data, text))
}
