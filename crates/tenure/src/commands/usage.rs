//! `tenure usage`: the tokens and dollars of agents.

use serde_json::json;
use tenure_core::rules::{UsageBy, sum_usage};
use tenure_core::wire::{self, UsageJson};
use tenure_core::{Timestamp, Usage};

use super::since::Since;
use super::usage_view::dollars;
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, keep};
use crate::text::Text;

/// Show what agents have used: tokens, and dollars where the agent prints them
///
/// The numbers are those that the agents print. Attempts that were removed with old history are not counted.
///
/// Example: tenure usage --by day --since 7d
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sum by task, agent or day (in UTC)
    #[arg(long, value_name = "WHAT", default_value = "task", value_parser = parse_by)]
    by: UsageBy,
    /// Only attempts that ended within this time (7d), or on or after this day (2026-11-16, in UTC)
    #[arg(long, value_name = "WHEN", value_parser = Since::parse)]
    since: Option<Since>,
}

fn parse_by(text: &str) -> Result<UsageBy, String> {
    UsageBy::parse(text).ok_or_else(|| "write task, agent or day".to_owned())
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let since = args.since.map_or(Timestamp::from_millis(0), |since| since.resolve(app.env.clock.now()));
    let sums = open.read(|view| sum_usage(view, args.by, since))?;
    let all = sums.iter().map(|sum| sum.usage).fold(Usage::default(), Usage::plus);
    let mut text = Text::new();
    if sums.is_empty() {
        text.line("No agent has reported its usage.");
    } else {
        let heading = match args.by {
            UsageBy::Task => "TASK",
            UsageBy::Agent => "AGENT",
            UsageBy::Day => "DAY",
        };
        let mut table = Table::new([
            keep(heading),
            keep("ATTEMPTS"),
            keep("INPUT"),
            keep("FROM CACHE"),
            keep("TO CACHE"),
            keep("OUTPUT"),
            keep("COST"),
        ]);
        for sum in &sums {
            table.row(cells(&sum.name, sum.attempts, wire::usage(sum.usage)));
        }
        if sums.len() > 1 {
            table.row(cells("total", sums.iter().map(|sum| sum.attempts).sum(), wire::usage(all)));
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = sums
        .iter()
        .map(|sum| wire::UsageSumJson {
            name: &sum.name,
            attempts: sum.attempts,
            usage: wire::usage(sum.usage),
        })
        .collect();
    let data = json!({"by": args.by.as_str(), "usage": rows, "total": rows.len(), "sum": wire::usage(all)});
    Ok(Answer::new(data, text))
}

fn cells(name: &str, attempts: u64, used: UsageJson) -> [String; 7] {
    [
        name.to_owned(),
        attempts.to_string(),
        used.input_tokens.to_string(),
        used.cached_tokens.to_string(),
        used.cache_write_tokens.to_string(),
        used.output_tokens.to_string(),
        used.usd.map_or_else(|| "-".to_owned(), dollars),
    ]
}
