//! `tenure tasks skip`.

use tenure_core::rules::Change;

use super::remark::OptionalRemark;
use super::status_change::{ChangeArgs, change};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;

/// Skip a task; tasks that depend on it are unblocked
///
/// Example: tenure tasks skip F001 -m 'No longer needed'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    remark: OptionalRemark,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    change(app, &args.change, Change::Skip, args.remark.message, "Skipped", "Would skip")
}
