//! `tenure store restore`: replaces everything in the store with a backup.

use std::path::PathBuf;

use serde_json::json;
use tenure_core::store::restore_store;
use tenure_core::{Error, ErrorCode};
use tenure_sqlite::SqliteStore;

use super::contents_json;
use super::scratch::Scratch;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::project::Located;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Replace everything in the store with a backup
///
/// FILE is what `tenure store backup` wrote, or a copy of a `tenure.db`. Refused while a lease is held. The leases in the
/// backup are ended and the next fence is greater than all earlier ones, so that nothing an earlier holder reports is
/// accepted. A damaged database is moved aside.
///
/// Example: tenure store restore work.backup
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore although a lease is held, or although the project was copied to another store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let project = match app.locate(&app.start()?) {
        Located::Project(project) | Located::Clone(project) => project,
        Located::Nothing => app.find()?,
    };
    crate::ownership::check(&project.paths, app.env)?;
    let config = project.config.clone()?;
    let scratch = Scratch::inside(&project.paths.folder(), app.env)?;
    let file = app.env.cwd.join(&args.file);
    let copy = scratch.copy_database(&file)?;
    let mut options = app.store_options();
    options.dry_run = false;
    let backup = SqliteStore::open(&copy, options).map_err(|error| unusable(&file, error))?;
    // A copy of a database is read-only until it is adopted.
    backup.adopt(&mut |_| Ok(()))?;
    let source = app.source(&project.paths, &config)?;
    let aside = if app.global.dry_run { None } else { source.set_damaged_aside()? };
    if !app.global.dry_run {
        source.create(config.project.name.as_deref().unwrap_or("project"))?;
    }
    let open = app.open_at(project)?;
    let actor = app.identity(&args.identity)?.holder.id;
    let contents = restore_store(&backup, open.store.movable(), &open.context(), &actor, args.force)?;
    let mut text = Text::new();
    let verb = app.past("Restored", "Would restore");
    text.line(format!("{verb} {} tasks from {}", contents.tasks, file.display()));
    if let Some(aside) = &aside {
        text.line(format!("The damaged database is now {}", aside.display()));
    }
    Ok(Answer::new(json!({"store": contents_json(&open.source, contents)}), text))
}

fn unusable(file: &std::path::Path, error: Error) -> Report {
    let mut report = Report::from(error);
    if report.code == ErrorCode::Store {
        report.context.clear();
        report.message = format!("{} is not a backup of a store: {}", file.display(), report.message);
    }
    report
}
