//! `tenure store`: the project's store.

use serde_json::{Value, json};
use tenure_core::store::StoreContents;

use crate::answer::Answer;
use crate::app::App;
use crate::fast_parser::Definition;
use crate::report::CommandResult;
use crate::store::Source;
use crate::verbs::{Commands, Group, verbs};

mod adopt;
mod backup;
mod copy;
mod restore;
mod scratch;

/// Move, back up and restore the project's store
///
/// Example: tenure store backup work.backup
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
    "backup" => Backup(backup),
    "restore" => Restore(restore),
}

impl Group for Args {
    type Verb = Verb;

    const VERBS: &'static [Definition] = Verb::DEFINITIONS;

    fn with_verb(verb: Verb) -> Self {
        Self { verb }
    }

    fn verb_name(&self) -> Option<&'static str> {
        Some(self.verb.name().command)
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    args.verb.run(app)
}

fn contents_json(source: &Source, contents: StoreContents) -> Value {
    json!({"url": source.shown(), "fence": contents.last_fence, "tasks": contents.tasks})
}
