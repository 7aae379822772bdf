//! `tenure sections list`.

use serde_json::json;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Table, Text};

/// List sections in working order
///
/// Example: tenure sections list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> CommandResult<Answer> {
    let sections = app.open()?.read(|view| view.sections())?;
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if sections.is_empty() {
        text.line("No sections.");
    } else {
        let mut table = Table::new(&["SECTION", "MODE", "PRIORITY", "OPEN", "TASKS", "HOLDER"]);
        for section in &sections {
            table.row([
                section.name.clone(),
                section.mode.as_str().to_owned(),
                section.priority.to_string(),
                section.open_tasks.to_string(),
                section.tasks.to_string(),
                section.lease.as_ref().map_or_else(|| "-".to_owned(), |l| l.holder.id.clone()),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = sections.iter().map(|s| wire::section(s, now, judge)).collect();
    Ok(Answer::new(json!({"sections": rows, "total": rows.len()}), text))
}
