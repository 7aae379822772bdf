//! `tenure store adopt`: makes a copied folder a separate project.

use std::time::Duration;

use serde_json::json;
use tenure_core::kernel::{self, Disowned};

use crate::answer::Answer;
use crate::app::{App, Open};
use crate::atomic;
use crate::commands::init;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::store::Backend;
use crate::text::Text;

/// Turn a copied folder into a separate project
///
/// Ends what the original's runners, agents and people hold in the copy, without touching their processes, and gives the
/// copy a new project id. Until then a copy can only be read.
///
/// Example: tenure store adopt
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// How long to wait for concurrent changes of the configuration.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<Answer> {
    let project = app.find()?;
    let open = app.open_at(project)?;
    let Backend::Sqlite(store) = &open.store else {
        return Err(Report::usage(
            "this project's store is on a server, where all folders with its project.id share it",
        ));
    };
    let mut text = Text::new();
    if !store.is_copy() {
        text.line("This project is not a copy; nothing changed.");
        return Ok(answer(&open, false, Disowned::default(), text));
    }
    let actor = app.identity(&IdentityArgs::default())?.holder.id;
    let ctx = open.context();
    let mut disowned = Disowned::default();
    // The configuration is changed first: if the command is interrupted, the store is still a copy, and the
    // command can be repeated.
    let id = if app.global.dry_run { None } else { new_project_id(app, &open)? };
    store.adopt(&mut |tx| {
        disowned = kernel::disown(tx, &ctx, &actor)?;
        Ok(())
    })?;
    let name = open.config.project.name.as_deref();
    if !app.global.dry_run
        && let Err(report) = init::register(app, &open.paths, name, id.as_deref())
    {
        app.printer.warn(&format!("the project was not registered: {}", report.message));
    }
    let Disowned { leases, attempts, runners } = disowned;
    text.line(format!(
        "{} {}: ended {leases} leases, {attempts} attempts and {runners} runners of the original",
        app.past("Adopted", "Would adopt"),
        open.paths.root.display(),
    ));
    Ok(answer(&open, true, disowned, text))
}

fn answer(open: &Open<'_>, adopted: bool, disowned: Disowned, text: Text) -> Answer {
    let Disowned { leases, attempts, runners } = disowned;
    Answer::new(
        json!({
            "path": open.paths.root, "adopted": adopted,
            "ended": {"leases": leases, "attempts": attempts, "runners": runners},
        }),
        text,
    )
}

/// Writes a new project id into the configuration, if there is one.
fn new_project_id(app: &App<'_>, open: &Open<'_>) -> CommandResult<Option<String>> {
    if !open.paths.config().exists() {
        return Ok(None);
    }
    let folder = open.paths.folder();
    let patience = app.global.timeout.map_or(PATIENCE, |limit| limit.min(PATIENCE));
    let _lock = atomic::lock(&folder, patience)
        .map_err(|e| Report::io(&e, tenure_core::ErrorCode::General, "lock", &folder))?;
    init::identify(app, &open.paths, None)?;
    Ok(app.config(Some(&open.paths))?.project.id.map(|id| id.to_string()))
}
