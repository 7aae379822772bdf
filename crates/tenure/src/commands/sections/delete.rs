//! `tenure sections delete`.

use tenure_core::rules::delete_section;

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Delete an empty section
///
/// Example: tenure sections delete Docs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The section
    name: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let caller = app.identity(&args.identity)?.actor(None);
    let section = open.write(|tx| delete_section(tx, &ctx, &caller, &args.name))?;
    Ok(view::changed(app, &section, app.past("Deleted", "Would delete")))
}
