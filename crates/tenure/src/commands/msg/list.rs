//! `tenure msg list`.

use serde_json::json;
use tenure_core::store::Message;
use tenure_core::wire;

use super::filter::Filter;
use crate::answer::Answer;
use crate::app::App;
use crate::local_time::LocalTime;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// List unacknowledged messages
///
/// Example: tenure msg list --task F001
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let filter = args.filter.resolve(app, &open)?;
    let (messages, total) = open.read(|view| view.messages(&filter))?;
    Ok(answer(&messages, total, &app.local_time()))
}

pub(super) fn answer(messages: &[Message], total: u64, time: &LocalTime) -> Answer {
    let mut text = Text::new();
    if messages.is_empty() {
        text.line("No messages.");
    }
    for message in messages {
        let place = message.task.as_ref().map(|t| format!(" on {}", t.key)).unwrap_or_default();
        let to = message.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        text.styled(Style::Bold, format!("#{}", message.id)).and(
            Style::Dim,
            format!("  {}  from {}{to}{place}", time.seconds(message.sent_at), message.from),
        );
        if let Some(by) = &message.acknowledged_by {
            text.and(Style::Dim, format!("  (acknowledged by {by})"));
        }
        text.block(4, &message.text);
    }
    let rows: Vec<_> = messages.iter().map(wire::message).collect();
    Answer::new(json!({"messages": rows, "total": total}), text)
}
