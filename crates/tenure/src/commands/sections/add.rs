//! `tenure sections add`.

use tenure_core::rules::{AddSection, add_section};
use tenure_core::section::SectionMode;

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Add a section
///
/// Example: tenure sections add Docs --parallel
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The section's name
    name: String,
    /// Allow many holders at a time
    #[arg(long)]
    parallel: bool,
    /// Priority; lower comes first (default 100)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let caller = app.identity(&args.identity)?.actor(None);
    let mode = if args.parallel { SectionMode::Parallel } else { SectionMode::Serial };
    let request = AddSection { name: args.name, mode, priority: args.priority };
    let section = open.write(|tx| add_section(tx, &ctx, &caller, &request))?;
    Ok(view::changed(app, &section, app.past("Added", "Would add")).key(&section.name))
}
