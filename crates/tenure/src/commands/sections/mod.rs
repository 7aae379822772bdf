//! `tenure sections`: groups of tasks.

use crate::verbs::verbs;

mod add;
mod delete;
mod depend;
mod list;
mod show;
mod update;
mod view;

/// Manage sections: groups of tasks with one holder at a time, or many
///
/// Example: tenure sections add Backend
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default List;
    "add" => Add(add),
    "list" => List(list),
    "show" => Show(show),
    "update" => Update(update),
    "depend" => Depend(depend),
    "delete" => Delete(delete),
}
