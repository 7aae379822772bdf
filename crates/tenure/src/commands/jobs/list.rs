//! `tenure jobs list`.

use serde_json::{Value, json};

use super::view::{self, style};
use crate::answer::Answer;
use crate::app::App;
use crate::commands::limit::ListLimit;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// Maximum number of dead letters per job in the list; `jobs show` prints more.
const DEAD_LETTERS: u64 = 10;

/// List jobs, newest first
///
/// Example: tenure jobs list --limit 5
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    list: ListLimit,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let (found, total) = open.read(|view| {
        let (jobs, total) = view.jobs(args.list.limit)?;
        let mut found = Vec::new();
        for job in jobs {
            let (status, object) = view::whole(view, &open, &job, DEAD_LETTERS)?;
            found.push((status, job, object));
        }
        Ok((found, total))
    })?;
    let mut text = Text::new();
    if found.is_empty() {
        text.line("No jobs.");
    } else {
        let mut table = Table::new([
            keep("ID"),
            cut("NAME"),
            keep("STATUS"),
            keep("DONE"),
            keep("FAILED"),
            keep("LEFT"),
            keep("UPDATED"),
        ]);
        let ids = ShortIds::of(found.iter().map(|(_, job, _)| job.id.as_str()));
        let time = app.local_time();
        for (status, job, _) in &found {
            let counts = &job.counts;
            table.styled_row(vec![
                (Style::Plain, ids.show(&job.id).to_owned()),
                (Style::Plain, job.name.clone()),
                (style(*status), status.as_str().to_owned()),
                (Style::Plain, format!("{}/{}", counts.succeeded, counts.total)),
                (if counts.failed > 0 { Style::Bad } else { Style::Plain }, counts.failed.to_string()),
                (Style::Plain, (counts.pending + counts.running).to_string()),
                (Style::Dim, time.seconds(job.updated_at)),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<Value> = found.into_iter().map(|(_, _, object)| object).collect();
    Ok(Answer::new(json!({"jobs": rows, "total": total}), text))
}
