//! `tenure runners`: daemons that work through the backlog with agents.

use std::path::Path;

use tenure_core::{Error, kernel};
use tenure_runner::{Scope, finish_ending};

use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;

pub(super) mod cron;
mod list;
pub(crate) mod logs;
mod outside;
mod resume;
mod start;
mod stop;
mod wakeup;

pub(super) use list::runner_object;
pub(super) use resume::resume;
pub(super) use start::{first_answer, leave_streams, ourselves};

/// Runners: start agents on the backlog, list, stop, read logs, wake up
///
/// Example: tenure runners start --foreground
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Start(Box<start::Args>),
    List(list::Args),
    Stop(stop::Args),
    Logs(logs::Args),
    Wakeup(wakeup::Args),
    Cron(cron::Args),
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            Some(Verb::Start(_)) => "start",
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Stop(_)) => "stop",
            Some(Verb::Logs(_)) => "logs",
            Some(Verb::Wakeup(_)) => "wakeup",
            Some(Verb::Cron(_)) => "cron",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    match args.verb.unwrap_or(Verb::List(list::Args::default())) {
        Verb::Start(args) => start::run(app, *args),
        Verb::List(args) => list::run(app, args).map(Some),
        Verb::Stop(args) => stop::run(app, args).map(Some),
        Verb::Logs(args) => logs::run(app, args),
        Verb::Wakeup(args) => wakeup::run(app, args).map(Some),
        Verb::Cron(args) => cron::run(app, args).map(Some),
    }
}

/// After a runner was killed: its leases, its rows, and what is left of its agent.
fn reconcile_at(app: &mut App<'_>, path: &str) -> Outcome<()> {
    let root = Path::new(path);
    let project = app.project_at(root);
    let project = project.ok_or_else(|| Error::NotInitialized { start: root.to_owned(), clone_at: None })?;
    let open = app.open_at(project)?;
    let actor = app.identity(&crate::identity::Who::default())?.holder.id;
    let ctx = open.context();
    open.write(|tx| kernel::reconcile(tx, &ctx, &actor))?;
    let cleared = finish_ending(open.store.as_ref(), &ctx, Scope::Abandoned, &actor)?;
    for survivor in &cleared.survivors {
        app.printer.warn(&format!("a process of an ended attempt does not die: {survivor}"));
    }
    Ok(())
}
