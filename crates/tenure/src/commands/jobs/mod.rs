//! `tenure jobs`: one command over many items.

use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;

mod cancel;
mod desk;
mod list;
mod merge;
mod progress;
mod retry;
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

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Start(Box<start::Args>),
    Work(work::Args),
    List(list::Args),
    Show(show::Args),
    Cancel(cancel::Args),
    Retry(retry::Args),
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            Some(Verb::Start(_)) => "start",
            Some(Verb::Work(_)) => "work",
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Show(_)) => "show",
            Some(Verb::Cancel(_)) => "cancel",
            Some(Verb::Retry(_)) => "retry",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    match args.verb.unwrap_or(Verb::List(list::Args::default())) {
        Verb::Start(args) => start::run(app, *args).map(Some),
        Verb::Work(args) => work::run(app, args).map(Some),
        Verb::List(args) => list::run(app, args).map(Some),
        Verb::Show(args) => show::run(app, args).map(Some),
        Verb::Cancel(args) => cancel::run(app, args).map(Some),
        Verb::Retry(args) => retry::run(app, args),
    }
}
