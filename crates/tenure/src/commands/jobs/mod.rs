//! `tenure jobs`: one command over many items.

use crate::verbs::verbs;

mod cancel;
mod list;
mod merge;
mod progress;
mod retry;
mod session;
mod show;
mod start;
pub(super) mod take_up;
mod view;
mod work;

/// Jobs: one command over many items, with retries, a dead-letter list and resume
///
/// Example: tenure jobs start thumbnails --items images.txt --parallel 4 -- ./thumbnail.sh {item}
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

verbs! {
    enum Verb, default List;
    "start" => Start(start),
    "work" => Work(work),
    "list" => List(list),
    "show" => Show(show),
    "cancel" => Cancel(cancel),
    "retry" => Retry(retry),
}
