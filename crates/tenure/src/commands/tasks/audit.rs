//! `tenure tasks audit`: a task's events.

use serde_json::json;
use tenure_core::id::TaskId;
use tenure_core::store::EventFilter;
use tenure_core::{reference, wire};

use super::show::history_line;
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Style, Text};

/// Show a task's history: each change with its time, author and reason
///
/// Example: tenure tasks audit F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let (name, events) = open.read(|view| {
        let name = reference::task(view, &args.task)?;
        let filter = EventFilter {
            task: Some(TaskId::new(&name.id)),
            limit: u64::from(u32::MAX),
            ..EventFilter::default()
        };
        let events = view.events(&filter)?;
        Ok((name, events))
    })?;
    let mut text = Text::new();
    text.styled(Style::Bold, name.key.clone()).and(Style::Plain, format!(" - {}", name.title));
    let time = app.local_time();
    for event in &events {
        text.line(history_line(event, &time)).hang(4);
    }
    let rows: Vec<_> = events.iter().map(wire::event).collect();
    Ok(Answer::new(json!({"task": wire::task_name(&name), "events": rows, "total": rows.len()}), text))
}
