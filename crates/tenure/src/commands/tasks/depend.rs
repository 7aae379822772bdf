//! `tenure tasks depend`.

use tenure_core::rules::{depend, undepend};

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Add or remove dependencies of a task
///
/// Example: tenure tasks depend F002 --on F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The dependent task
    task: String,
    /// A task that must be finished first (repeat for more)
    #[arg(long, value_name = "U")]
    on: Vec<String>,
    /// A task to remove from its dependencies (repeat for more)
    #[arg(long, value_name = "U")]
    not_on: Vec<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if args.on.is_empty() && args.not_on.is_empty() {
        return Err(Report::usage("nothing to change: give --on TASK or --not-on TASK"));
    }
    let open = app.open()?;
    let caller = app.identity(&args.identity)?.actor(None);
    let ctx = open.context();
    let hook_filter = hooks::filter(app, &open);
    let (task, hook_contexts) = open.write(|tx| {
        let mut task = None;
        for on in &args.not_on {
            task = Some(undepend(tx, &ctx, &caller, &args.task, on)?);
        }
        for on in &args.on {
            task = Some(depend(tx, &ctx, &caller, &args.task, on)?);
        }
        let task = task.ok_or_else(|| tenure_core::Error::invalid("nothing to change"))?;
        let hook_contexts = hook_filter.edited(tx.now(), &task);
        Ok((task, hook_contexts))
    })?;
    hooks::deliver(app, &open, &hook_contexts);
    let mut text = Text::new();
    text.line(if task.depends_on.is_empty() {
        format!("{} {} on nothing", task.key, app.past("depends", "would depend"))
    } else {
        format!("{} {} on {}", task.key, app.past("depends", "would depend"), task.depends_on.join(", "))
    });
    Ok(Answer::new(view::data(app, &task), text))
}
