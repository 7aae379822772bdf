//! `tenure sections update`.

use tenure_core::rules::{EditSection, edit_section};
use tenure_core::section::SectionMode;

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};

/// Change a section
///
/// Example: tenure sections update Docs --serial --priority 10
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The section
    name: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    /// Allow many holders at a time
    #[arg(long, conflicts_with = "serial")]
    parallel: bool,
    /// Allow one holder at a time
    #[arg(long)]
    serial: bool,
    /// Priority; lower comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Move it directly after this section
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let mode = match (args.parallel, args.serial) {
        (true, _) => Some(SectionMode::Parallel),
        (_, true) => Some(SectionMode::Serial),
        _ => None,
    };
    let request = EditSection { name: args.rename, mode, priority: args.priority, after: args.after };
    if request.name.is_none() && mode.is_none() && request.priority.is_none() && request.after.is_none() {
        return Err(Report::usage("nothing to change: give an option, for example --parallel"));
    }
    let caller = app.identity(&args.identity)?.actor(None);
    let section = open.write(|tx| edit_section(tx, &ctx, &caller, &args.name, &request))?;
    Ok(view::changed(app, &section, app.past("Updated", "Would update")))
}
