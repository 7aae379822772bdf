//! `tenure projects`: the registry of this machine's projects, a directory of paths.

use crate::verbs::verbs;

mod add;
mod disable;
mod enable;
mod list;
pub(crate) mod registry;
mod remove;

pub(super) use registry::moved_to;

/// Manage the registry of projects on this machine
///
/// Example: tenure projects list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default List;
    "list" => List(list),
    "add" => Add(add),
    "remove" => Remove(remove),
    "enable" => Enable(enable),
    "disable" => Disable(disable),
}
