//! `tenure tasks reopen`.

use tenure_core::rules::Change;

use super::remark::OptionalRemark;
use super::status_change::{ChangeArgs, change};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Reopen a completed, failed or skipped task: it becomes pending
///
/// Example: tenure tasks reopen F001 F002 -m 'The bug is back'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    remark: OptionalRemark,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, &args.change, Change::Reopen, args.remark.message, "Reopened", "Would reopen")
}
