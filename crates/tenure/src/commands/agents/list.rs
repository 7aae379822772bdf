//! `tenure agents list`.

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Table, Text};

/// List agents
///
/// Example: tenure agents list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let (agents, now) = open.read(|view| Ok((view.agents()?, view.now())))?;
    let mut text = Text::new();
    if agents.is_empty() {
        text.line("No agents.");
    } else {
        let mut table = Table::new(&["AGENT", "NAME", "CLAIMS", "LAST SEEN", "CAPABILITIES"]);
        for agent in &agents {
            let seen = match agent.left_at {
                Some(_) => "left".to_owned(),
                None => format!("{} ago", format_rounded(now.since(agent.last_seen_at))),
            };
            table.row([
                agent.id.clone(),
                agent.name.clone().unwrap_or_else(|| "-".to_owned()),
                agent.active_claims.to_string(),
                seen,
                agent.capabilities.join(", "),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = agents.iter().map(wire::agent).collect();
    Ok(Answer::new(json!({"agents": rows, "total": rows.len()}), text))
}
