//! `tenure projects remove`.

use std::path::PathBuf;

use tenure_sqlite::Directory;

use super::registry::change;
use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;

/// Forget a project; its files stay
///
/// Example: tenure projects remove ~/src/shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its folder (default: this one)
    path: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    change(app, args.path, "Removed", "remove", Directory::remove)
}
