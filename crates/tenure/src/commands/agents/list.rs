//! `tenure agents list`.

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::store::Agent;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::{Style, Text};

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
        let mut columns = vec![keep("AGENT"), cut("NAME"), keep("CLAIMS"), keep("LAST SEEN")];
        // Most agents have no capabilities, so the column is shown only if one has.
        let has_capabilities = agents.iter().any(|agent| !agent.capabilities.is_empty());
        columns.extend(has_capabilities.then(|| cut("CAPABILITIES")));
        let mut table = Table::new(columns);
        let (once, others): (Vec<&Agent>, Vec<&Agent>) = agents.iter().partition(|agent| is_throwaway(agent));
        // A single throwaway agent is listed: it may be about to be used.
        let (once, others) =
            if once.len() < 2 { (Vec::new(), agents.iter().collect()) } else { (once, others) };
        for agent in others {
            let seen = match agent.left_at {
                Some(_) => "left".to_owned(),
                None => format!("{} ago", format_rounded(now.since(agent.last_seen_at))),
            };
            let style = if agent.left_at.is_some() { Style::Dim } else { Style::Plain };
            let cells = [
                agent.id.clone(),
                agent.name.clone().unwrap_or_else(|| "-".to_owned()),
                agent.active_claims.to_string(),
                seen,
                agent.capabilities.join(", "),
            ];
            table.styled_row(cells.into_iter().map(|cell| (style, cell)).collect());
        }
        if let Some(last) = once.iter().map(|agent| agent.last_seen_at).max() {
            let seen = format!("{} ago", format_rounded(now.since(last)));
            table.row([
                format!("{} agents", once.len()),
                "(seen once)".to_owned(),
                "0".to_owned(),
                seen,
                String::new(),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = agents.iter().map(wire::agent).collect();
    Ok(Answer::new(json!({"agents": rows, "total": rows.len()}), text))
}

/// An agent that was registered by one claim without an identity, and never seen again. Retention removes it.
fn is_throwaway(agent: &Agent) -> bool {
    agent.name.is_none()
        && agent.capabilities.is_empty()
        && agent.active_claims == 0
        && agent.left_at.is_none()
        && agent.last_seen_at == agent.joined_at
}
