//! `tenure trust`: a person decides whether the settings of a project's file that run a command or connect to something
//! apply, and whether agents are started in it.

use clap::Args as _;

use crate::answer::Answer;
use crate::app::App;
use crate::fast_parser::Definition;
use crate::report::{CommandResult, Report};
use crate::verbs::{Commands, Group, verbs};

mod decide;
mod list;
mod question;

pub(super) use decide::project_or_clone;
pub(super) use question::{require, restate};

/// Show what this project's file would run or connect to, and decide whether it may
///
/// The settings of `.tenure/config.yaml` that name commands, hosts or a store apply only if you have trusted exactly this
/// content, and agents are started only in a project that you have trusted. Only a person at a terminal can trust.
///
/// Example: tenure trust --show
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    decide: decide::Args,
}

verbs! {
    enum Verb;
    "list" => List(list),
}

impl Group for Args {
    type Verb = Verb;

    const VERBS: &'static [Definition] = Verb::DEFINITIONS;

    fn with_verb(verb: Verb) -> Self {
        Self { verb: Some(verb), decide: decide::Args::default() }
    }

    fn verb_name(&self) -> Option<&'static str> {
        self.verb.as_ref().map(|verb| verb.name().command)
    }

    fn without_verb(command: clap::Command) -> clap::Command {
        decide::Args::augment_args(command)
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let Some(verb) = args.verb else { return decide::run(app, args.decide).map(Some) };
    if args.decide != decide::Args::default() {
        return Err(Report::usage("the options before the subcommand belong to `tenure trust`"));
    }
    verb.run(app)
}
