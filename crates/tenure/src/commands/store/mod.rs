//! `tenure store`: the project's store.

use crate::answer::Answer;
use crate::app::App;
use crate::fast_parser::Definition;
use crate::report::CommandResult;
use crate::verbs::{Commands, Group, verbs};

mod adopt;
mod copy;

/// Manage the project's store
///
/// Example: tenure store copy --to postgres://ann@db.example/work --dry-run
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    // Required: no verb is harmless enough to be the default.
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    enum Verb;
    "adopt" => Adopt(adopt),
    "copy" => Copy(copy),
}

impl Group for Args {
    const VERBS: &'static [Definition] = Verb::DEFINITIONS;

    fn verb_name(&self) -> &'static str {
        self.verb.name().command
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    args.verb.run(app)
}
