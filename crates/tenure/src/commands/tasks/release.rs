//! `tenure tasks release`.

use tenure_core::kernel::Finish;

use super::finish;
use super::remark::OptionalRemark;
use super::several::TasksArg;
use crate::answer::Answer;
use crate::app::{App, read_text};
use crate::identity::IdentityArgs;
use crate::report::CommandResult;

/// Release your task, so that it can be claimed again
///
/// Example: tenure tasks release F001 --agent A1234ABCD -m 'Blocked on credentials'
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
    let message = args.remark.message.as_deref().map(read_text).transpose()?;
    if let Some(text) = &message {
        tenure_core::text::check_message(text).map_err(tenure_core::Error::from)?;
    }
    finish::finish_each(
        app,
        &args.tasks,
        &args.identity,
        Finish::Release(message.as_deref()),
        "release",
        "released",
    )
}
