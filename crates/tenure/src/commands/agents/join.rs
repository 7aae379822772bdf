//! `tenure agents join`.

use serde_json::json;
use tenure_core::hints;
use tenure_core::rules::join_agent;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::Text;

/// Register a new agent and print its id, for --agent
///
/// Example: export TENURE_AGENT=$(tenure agents join --quiet)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A display name
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// A capability (repeat for more)
    #[arg(long, value_name = "C")]
    capability: Vec<String>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let agent = open.write(|tx| join_agent(tx, &ctx, args.name.as_deref(), &args.capability))?;
    let mut text = Text::new();
    if app.global.dry_run {
        text.line("Would register a new agent");
    } else {
        text.line(agent.id.clone());
    }
    let answer = Answer::new(json!({"agent": wire::agent(&agent)}), text);
    Ok(answer.hint(hints::use_agent(&agent.id)))
}
