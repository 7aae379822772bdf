//! `tenure sections list`.

use serde_json::json;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::Text;
use tenure_core::short_id::ShortIds;

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
        let mut table = Table::new([
            cut("SECTION"),
            keep("MODE"),
            keep("PRIORITY"),
            keep("OPEN"),
            keep("TASKS"),
            cut("HOLDER"),
        ]);
        let holders = sections.iter().filter_map(|section| Some(&section.lease.as_ref()?.holder.id));
        let ids = ShortIds::of(holders.map(String::as_str));
        for section in &sections {
            let holder = section.lease.as_ref().map_or("-", |lease| ids.show(&lease.holder.id));
            table.row([
                section.name.clone(),
                section.mode.as_str().to_owned(),
                section.priority.to_string(),
                section.open_tasks.to_string(),
                section.tasks.to_string(),
                holder.to_owned(),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = sections.iter().map(|s| wire::section(s, now, judge)).collect();
    Ok(Answer::new(json!({"sections": rows, "total": rows.len()}), text))
}
