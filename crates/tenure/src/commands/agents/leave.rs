//! `tenure agents leave`.

use serde_json::json;
use tenure_core::hints;
use tenure_core::rules::leave_agent;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Remove an agent and release everything it holds
///
/// Example: tenure agents leave A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent's id (default: yours)
    id: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let identity = app.identity(&args.identity)?;
    let id = match args.id {
        Some(id) => id,
        None if args.identity.agent.is_some() || app.env.var("TENURE_AGENT").is_some() => identity.holder.id,
        None => {
            return Err(
                Report::usage("no agent given: pass its id, or set TENURE_AGENT").hint(hints::list_agents())
            );
        }
    };
    let (agent, released) = open.write(|tx| leave_agent(tx, &ctx, &id))?;
    let mut text = Text::new();
    text.line(format!("{} {}", agent.id, app.past("left", "would leave")));
    let answer_data = json!({"agent": wire::agent(&agent), "released": released.len()});
    if released.is_empty() {
        return Ok(Answer::new(answer_data, text));
    }
    let tasks = if released.len() == 1 { "task" } else { "tasks" };
    let back = app.past("released", "would be released");
    text.line(format!("  {} {tasks} {back}", released.len()));
    Ok(Answer::new(answer_data, text).hint(hints::list_ready()))
}
