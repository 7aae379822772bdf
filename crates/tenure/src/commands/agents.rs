//! `tenure agents`: names that hold leases.

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::rules::{join_agent, leave_agent};
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::identity::Who;
use crate::report::{Outcome, Report};
use crate::text::{Table, Text};

/// Agents: join, list, leave
///
/// Example: tenure agents join --name reviewer
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Become an agent: prints the id that --agent takes
    ///
    /// Example: export TENURE_AGENT=$(tenure agents join --quiet)
    Join {
        /// A name for people
        #[arg(long, value_name = "N")]
        name: Option<String>,
        /// Something it can do (repeat for more)
        #[arg(long, value_name = "C")]
        capability: Vec<String>,
    },
    /// List agents
    ///
    /// Example: tenure agents list
    List,
    /// Leave: what the agent holds goes back
    ///
    /// Example: tenure agents leave A1234ABCD
    Leave {
        /// Its id (default: yours)
        id: Option<String>,
        #[command(flatten)]
        who: Who,
    },
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List) => "list",
            Some(Verb::Join { .. }) => "join",
            Some(Verb::Leave { .. }) => "leave",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    match args.verb.unwrap_or(Verb::List) {
        Verb::Join { name, capability } => {
            let agent = open.write(|tx| join_agent(tx, &ctx, name.as_deref(), &capability))?;
            let mut text = Text::new();
            if app.global.dry_run {
                text.line("Would join as a new agent");
            } else {
                text.line(agent.id.clone());
            }
            let answer = Answer::new(json!({"agent": wire::agent(&agent)}), text);
            Ok(answer.hint("use it", format!("export TENURE_AGENT={}", agent.id)))
        }
        Verb::List => {
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
                text.table(&table, app.printer.look());
            }
            let rows: Vec<_> = agents.iter().map(wire::agent).collect();
            Ok(Answer::new(json!({"agents": rows, "total": rows.len()}), text))
        }
        Verb::Leave { id, who } => {
            let identity = app.identity(&who)?;
            let id = match id {
                Some(id) => id,
                None if who.agent.is_some() || app.env.var("TENURE_AGENT").is_some() => identity.holder.id,
                None => {
                    return Err(Report::usage("say which agent leaves").hint("see all", "tenure agents list"));
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
            let back = app.past("given back", "would be given back");
            text.line(format!("  {} {tasks} {back}", released.len()));
            Ok(Answer::new(answer_data, text).hint("see what can be taken", "tenure tasks list --ready"))
        }
    }
}
