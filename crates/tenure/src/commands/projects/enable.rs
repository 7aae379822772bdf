//! `tenure projects enable`.

use std::path::PathBuf;

use super::registry::change;
use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;

/// Let wake-up look after a project again
///
/// Example: tenure projects enable ~/src/shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Its folder (default: this one)
    path: Option<PathBuf>,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    change(app, args.path, "Enabled", "enable", |d, p| d.set_enabled(p, true))
}
