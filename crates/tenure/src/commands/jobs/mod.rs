//! `tenure jobs`: one command over many items.

use crate::verbs::verbs;

mod cancel;
mod job_process;
mod list;
mod merge;
mod progress;
pub(super) mod resume;
mod retry;
mod show;
mod start;
mod view;
mod work;

/// Run one command over many items, with retries, a dead-letter list and resume
///
/// Example: tenure jobs start thumbnails --items images.txt --parallel 4 -- ./thumbnail.sh {item}
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    default: list::Args,
}

verbs! {
    enum Verb, default List(list);
    "start" => Start(start),
    "work" => Work(work),
    "list" => List(list),
    "show" => Show(show),
    "cancel" => Cancel(cancel),
    "retry" => Retry(retry),
}
