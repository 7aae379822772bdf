//! `tenure agents`: registered agents.

use crate::verbs::verbs;

mod join;
mod leave;
mod list;

/// Agents: join, list, leave
///
/// Example: tenure agents join --name reviewer
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default List;
    "join" => Join(join),
    "list" => List(list),
    "leave" => Leave(leave),
}
