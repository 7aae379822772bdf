//! `tenure store backup`: saves the store in a file.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;

use super::contents_json;
use super::scratch::Scratch;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::shell_quote::last_arg;
use crate::text::Text;

/// Save everything in one file
///
/// The file is a complete SQLite database, even if the project is on a PostgreSQL server, and only you can read it. Others
/// may work meanwhile. `tenure store restore FILE` restores it.
///
/// Example: tenure store backup work.backup
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let file = app.env.cwd.join(&args.file);
    let Some(folder) = file.parent() else {
        return Err(Report::usage(format!("{} is not a file", file.display())));
    };
    if !args.force && file.symlink_metadata().is_ok() {
        return Err(exists(&file));
    }
    let scratch = Scratch::inside(folder, app.env)?;
    let copy = scratch.path("backup");
    let mut options = app.store_options();
    options.dry_run = false;
    let contents = open.store.back_up(&copy, options)?;
    if !app.global.dry_run {
        publish(&copy, &file, args.force)?;
    }
    let mut text = Text::new();
    let verb = app.past("Saved", "Would save");
    text.line(format!("{verb} {} tasks in {}", contents.tasks, file.display()));
    let data = json!({
        "store": contents_json(&open.source, contents),
        "file": file.to_string_lossy(),
    });
    Ok(Answer::new(data, text).hint(hints::restore(last_arg(&file.to_string_lossy()))))
}

fn exists(file: &Path) -> Report {
    Report::usage(format!("{} already exists and was not overwritten", file.display()))
}

/// Gives the complete file its name.
fn publish(copy: &Path, file: &Path, force: bool) -> CommandResult<()> {
    let failed = |e: &std::io::Error| Report::io(e, ErrorCode::General, "write", file);
    File::open(copy).and_then(|copy| copy.sync_all()).map_err(|e| failed(&e))?;
    // Unlike a rename, a hard link never replaces an existing file.
    let named = if force { std::fs::rename(copy, file) } else { std::fs::hard_link(copy, file) };
    match named {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(file)),
        named => named.map_err(|e| failed(&e))?,
    }
    let folder = file.parent().unwrap_or(file);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| failed(&e))
}
