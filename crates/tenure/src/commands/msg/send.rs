//! `tenure msg send`.

use serde_json::json;
use tenure_core::rules::send_message;
use tenure_core::{Error, wire};

use crate::answer::Answer;
use crate::app::{App, Open, read_text};
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Leave a message on a task, or for an agent
///
/// Example: tenure msg send --task F001 -m 'Blocked on API credentials'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task, like --task
    #[arg(value_name = "TASK", conflicts_with = "task")]
    on: Option<String>,
    /// The text, like --message
    #[arg(value_name = "MESSAGE", conflicts_with = "message")]
    text: Option<String>,
    /// The task
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// The sender (default: you)
    #[arg(long, value_name = "A")]
    from: Option<String>,
    /// The receiving agent
    #[arg(long, value_name = "A")]
    to: Option<String>,
    /// The text; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    message: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let task = args.on.or(args.task);
    let Some(message) = args.text.or(args.message) else {
        return Err(Report::usage("the message has no text: give it with -m TEXT"));
    };
    let open = app.open()?;
    let identity = app.identity(&args.identity)?;
    let body = read_text(&message)?;
    let from = args.from.unwrap_or(identity.holder.id);
    send(app, &open, &from, task.as_deref(), args.to.as_deref(), &body)
}

/// Sends a message. `task` is a reference to a task, `to` the id of an agent.
pub(crate) fn send(
    app: &App<'_>,
    open: &Open<'_>,
    from: &str,
    task: Option<&str>,
    to: Option<&str>,
    body: &str,
) -> CommandResult<Answer> {
    let task = task.map(|task| open.resolve(task)).transpose()?;
    tenure_core::text::check_agent_id(from).map_err(Error::from)?;
    let sent = open.write(|tx| send_message(tx, task.as_ref(), from, to, body))?;
    let mut text = Text::new();
    let target = match (&sent.task, &sent.to) {
        (Some(task), Some(to)) => format!("on {} for {to}", task.key),
        (Some(task), None) => format!("on {}", task.key),
        (None, to) => format!("for {}", to.as_deref().unwrap_or_default()),
    };
    if app.global.dry_run {
        text.line(format!("Would leave a message {target}"));
    } else {
        text.line(format!("Left message #{} {target}", sent.id));
    }
    Ok(Answer::new(json!(wire::MessageAnswer { message: wire::message(&sent) }), text)
        .key(sent.id.to_string()))
}
