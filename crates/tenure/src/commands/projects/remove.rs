//! `tenure projects remove`.

use std::path::PathBuf;

use tenure_sqlite::Directory;

use super::registry::change;
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Unregister a project; its files are kept
///
/// Example: tenure projects remove ~/src/shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's folder (default: the current project)
    path: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, args.path, "Removed", "remove", Directory::remove)
}
