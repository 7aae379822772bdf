//! `tenure tasks fail`.

use tenure_core::kernel::Finish;

use super::finish;
use super::remark::Remark;
use crate::answer::Answer;
use crate::app::{App, read_text};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Mark your task as failed, with a reason
///
/// Example: tenure tasks fail F001 --agent A1234ABCD -m 'The API does not exist'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    #[command(flatten)]
    remark: Remark,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let message = read_text(&args.remark.message)?;
    tenure_core::text::check_message(&message).map_err(tenure_core::Error::from)?;
    finish::resolve_and_finish(app, &args.task, &args.identity, Finish::Fail(&message), "fail", "failed")
}
