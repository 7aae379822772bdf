//! `tenure tasks done`.

use tenure_core::kernel::Finish;

use super::finish;
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Mark your task as done
///
/// Example: tenure tasks done F001 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    finish::resolve_and_finish(app, &args.task, &args.identity, Finish::Done, "done", "done")
}
