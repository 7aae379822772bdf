//! `tenure sessions list`.

use serde_json::{Value, json};

use super::{object, style};
use crate::answer::Answer;
use crate::app::App;
use crate::commands::limit::ListLimit;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// List sessions, newest first
///
/// Example: tenure sessions list --limit 5
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    list: ListLimit,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let (rows, total) = open.read(|view| {
        let (sessions, total) = view.sessions(args.list.limit)?;
        let mut rows = Vec::new();
        for session in sessions {
            let (status, object) = object(view, &open, &session)?;
            rows.push((session, status, object));
        }
        Ok((rows, total))
    })?;
    let mut text = Text::new();
    if rows.is_empty() {
        text.line("No sessions.");
    } else {
        let mut table = Table::new([
            keep("ID"),
            keep("STATUS"),
            cut("PRESET"),
            keep("DONE"),
            keep("TASK"),
            keep("STARTED"),
            keep("UPDATED"),
        ]);
        let ids = ShortIds::of(rows.iter().map(|(session, _, _)| session.id.as_str()));
        let time = app.local_time();
        for (session, status, object) in &rows {
            let done = object["done"].as_array().map_or(0, Vec::len);
            let task = session.current.as_ref().map_or("-", |current| current.key.as_str());
            table.styled_row(vec![
                (Style::Plain, ids.show(&session.id).to_owned()),
                (style(status), (*status).to_owned()),
                (Style::Plain, session.options.preset.clone()),
                (Style::Plain, done.to_string()),
                (Style::Plain, task.to_owned()),
                (Style::Dim, time.seconds(session.started_at)),
                (Style::Dim, time.seconds(session.updated_at)),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<Value> = rows.into_iter().map(|(_, _, object)| object).collect();
    Ok(Answer::new(json!({"sessions": rows, "total": total}), text))
}
