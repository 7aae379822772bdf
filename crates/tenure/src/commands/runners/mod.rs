//! `tenure runners`: daemons that run agents on ready tasks.

use std::path::Path;

use tenure_core::{Error, kernel};
use tenure_runner::{Scope, reap_attempts};

use crate::app::App;
use crate::report::CommandResult;
use crate::verbs::verbs;

mod callbacks;
pub(super) mod cron;
mod list;
pub(crate) mod logs;
mod resume;
mod review_diff;
pub(crate) mod start;
pub(crate) mod stop;
mod wakeup;

pub(super) use resume::resume;
pub(super) use start::{first_answer, own_command};

/// Start, list, stop and wake up runners, and read their logs
///
/// Example: tenure runners start --foreground
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
    "list" => List(list),
    "stop" => Stop(stop),
    "logs" => Logs(logs),
    "wakeup" => Wakeup(wakeup),
    "cron" => Cron(cron) with verbs,
}

/// Cleans up after a killed runner: closes its leases and rows, and reaps the processes of its agent.
fn reconcile_at(app: &mut App<'_>, path: &str) -> CommandResult<()> {
    let root = Path::new(path);
    let project = app.project_at(root);
    let project = project.ok_or_else(|| Error::NotInitialized { start: root.to_owned(), clone_at: None })?;
    let open = app.open_at(project)?;
    let actor = app.identity(&crate::identity::IdentityArgs::default())?.holder.id;
    let ctx = open.context();
    open.write(|tx| kernel::reconcile(tx, &ctx, &actor))?;
    let cleared = reap_attempts(open.store.as_ref(), &ctx, Scope::Abandoned, &actor)?;
    for survivor in &cleared.survivors {
        app.printer.warn(&format!("a process of an ended attempt cannot be killed: {survivor}"));
    }
    Ok(())
}
