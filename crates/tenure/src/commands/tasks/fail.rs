//! `tenure tasks fail`.

use tenure_core::kernel::Finish;

use super::finish;
use super::remark::Remark;
use super::several::TasksArg;
use crate::answer::Answer;
use crate::app::{App, read_text};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Mark your task as failed, with a reason
///
/// Example: tenure tasks fail F001 --agent A1234ABCD -m 'The API does not exist'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tasks: TasksArg,
    #[command(flatten)]
    remark: Remark,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let message = read_text(&args.remark.message)?;
    tenure_core::text::check_message(&message).map_err(tenure_core::Error::from)?;
    finish::finish_each(app, &args.tasks, &args.identity, Finish::Fail(&message), "fail", "failed")
}
