//! `tenure projects enable`.

use std::path::PathBuf;

use super::registry::change;
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Enable wake-up for a project again
///
/// Example: tenure projects enable ~/src/shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's folder (default: the current project)
    path: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, args.path, "Enabled", "enable", |d, p| d.set_enabled(p, true))
}
