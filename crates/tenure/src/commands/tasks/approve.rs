//! `tenure tasks approve`.

use tenure_core::rules::Change;

use super::remark::OptionalRemark;
use super::status_change::{ChangeArgs, change};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Approve a task that is in review
///
/// Example: tenure tasks approve F001
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    remark: OptionalRemark,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, &args.change, Change::Approve, args.remark.message, "Approved", "Would approve")
}
