//! `tenure tasks done`.

use tenure_core::kernel::Finish;

use super::finish;
use super::remark::OptionalRemark;
use super::several::TasksArg;
use crate::answer::Answer;
use crate::app::{App, read_text};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Mark your task as done
///
/// Example: tenure tasks done F001 --agent A1234ABCD
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tasks: TasksArg,
    #[command(flatten)]
    remark: OptionalRemark,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let message = match &args.remark.message {
        Some(message) => Some(read_text(message)?),
        None => None,
    };
    if let Some(message) = &message {
        tenure_core::text::check_message(message).map_err(tenure_core::Error::from)?;
    }
    let outcome = message.as_deref().map_or(Finish::Done, Finish::DoneWith);
    finish::finish_each(app, &args.tasks, &args.identity, outcome, "done", "done")
}
