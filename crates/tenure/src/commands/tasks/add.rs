//! `tenure tasks add`.

use tenure_core::rules::{AddTask, add_task};

use super::view;
use crate::answer::Answer;
use crate::app::{App, Open, read_text};
use crate::hooks;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Add a task
///
/// Example: tenure tasks add 'Fix the login page' --id F001 --section Backend --depends-on T1
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The title: what to do, in one line
    title: String,
    /// The task's key (default: the next of T1, T2 …)
    #[arg(long, value_name = "KEY", visible_alias = "key")]
    id: Option<String>,
    /// The section it belongs to
    #[arg(long, value_name = "S")]
    section: Option<String>,
    /// The specification: a file, and a heading in it (docs/SPEC.md#login)
    #[arg(long, value_name = "FILE#ANCHOR")]
    source: Option<String>,
    /// The description; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Priority; lower comes first (default 100)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// A task that must be finished first (repeat for more)
    #[arg(long, value_name = "T")]
    depends_on: Vec<String>,
    /// A label (repeat for more)
    #[arg(long, value_name = "L")]
    label: Vec<String>,
    /// Place it directly after this task
    #[arg(long, value_name = "T")]
    after: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let request = AddTask {
        title: args.title,
        key: args.id,
        description: args.description.as_deref().map(read_text).transpose()?.unwrap_or_default(),
        section: args.section,
        source_file: args.source,
        priority: args.priority,
        depends_on: args.depends_on,
        labels: args.label,
        after: args.after,
    };
    add(app, &open, &args.identity, &request)
}

pub(crate) fn add(
    app: &mut App<'_>,
    open: &Open<'_>,
    identity_args: &IdentityArgs,
    request: &AddTask,
) -> CommandResult<Answer> {
    let caller = app.identity(identity_args)?.actor(None);
    let ctx = open.context();
    let task = hooks::write_and_deliver(app, open, |tx, hook_filter| {
        let task = add_task(tx, &ctx, &caller, request)?;
        let hook_contexts = hook_filter.created(tx.now(), &task);
        Ok((task, hook_contexts))
    })?;
    let mut text = Text::new();
    text.line(format!("{} ", app.past("Added", "Would add")))
        .and(Style::Bold, task.key.clone())
        .and(Style::Plain, format!("  {}", task.title));
    if !task.blocked_by.is_empty() {
        text.line(format!("  blocked by {}", task.blocked_by.join(", ")));
    }
    Ok(Answer::new(view::data(app, &task), text).key(&task.key))
}
