//! `tenure locks`: which resources are held, and by whom.

use crate::verbs::verbs;

mod cleanup;
mod list;
pub(crate) mod release;
mod show;

/// List, show, release and clean up locks
///
/// REF is a task, `section:NAME`, or a lease id.
///
/// Example: tenure locks list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    default: list::Args,
}

verbs! {
    enum Verb, default List(list);
    "list" => List(list),
    "show" => Show(show),
    "release" => Release(release),
    "cleanup" => Cleanup(cleanup),
}
