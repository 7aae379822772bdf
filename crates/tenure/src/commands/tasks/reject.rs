//! `tenure tasks reject`.

use tenure_core::rules::Change;

use super::remark::Remark;
use super::status_change::{ChangeArgs, change};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Reject a task in review or completed, with a reason; it becomes pending again
///
/// Example: tenure tasks reject F001 -m 'The tests are missing'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    remark: Remark,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, &args.change, Change::Reject, Some(args.remark.message), "Rejected", "Would reject")
}
