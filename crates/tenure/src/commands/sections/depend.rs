//! `tenure sections depend`.

use tenure_core::reference;
use tenure_core::rules::{depend_section, undepend_section};

use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Add or remove dependencies between sections
///
/// Example: tenure sections depend Frontend --on Backend
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The dependent section
    name: String,
    /// A section that must be finished first (repeat for more)
    #[arg(long, value_name = "NAME")]
    on: Vec<String>,
    /// A section to remove from its dependencies (repeat for more)
    #[arg(long, value_name = "NAME")]
    not_on: Vec<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    if args.on.is_empty() && args.not_on.is_empty() {
        return Err(Report::usage("nothing to change: give --on SECTION or --not-on SECTION"));
    }
    let caller = app.identity(&args.identity)?.actor(None);
    let section = open.write(|tx| {
        let mut section = reference::section(tx, &args.name)?;
        for other in &args.not_on {
            section = undepend_section(tx, &ctx, &caller, &args.name, other)?;
        }
        for other in &args.on {
            section = depend_section(tx, &ctx, &caller, &args.name, other)?;
        }
        Ok(section)
    })?;
    let mut text = Text::new();
    let depends = app.past("depends", "would depend");
    let on = if section.depends_on.is_empty() { "nothing".to_owned() } else { section.depends_on.join(", ") };
    text.line(format!("Section {} {depends} on {on}", section.name));
    Ok(Answer::new(view::data(app, &section), text))
}
