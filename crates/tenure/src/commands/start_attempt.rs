//! `tenure start-attempt`: what a supervisor really starts. It looks once more, and becomes the command.

use std::ffi::OsString;
use std::process::Command;

use tenure_core::ErrorCode;
use tenure_runner::ExecRefused;

use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};

/// Become the command of the attempt in TENURE_ATTEMPT, if that still runs (for tenure itself)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    let Some(mark) = app.env.var("TENURE_ATTEMPT") else {
        return Err(Report::usage("TENURE_ATTEMPT is not set; this command is for tenure itself"));
    };
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Report::usage("no command was given"));
    };
    let open = app.open()?;
    let mut command = Command::new(program);
    command.args(rest);
    let not = tenure_runner::exec_if_running(open.store.as_ref(), app.env.judge.as_ref(), mark, &mut command);
    let mut report = match &not {
        ExecRefused::Over => Report::new(ErrorCode::LeaseLost, "the attempt was over before it began"),
        // The supervisor tells it, from the attempt's row.
        ExecRefused::Failed(_) => Report::new(ErrorCode::General, ""),
        ExecRefused::Store(error) => Report::new(error.code(), error.to_string()),
    };
    report.exit = Some(not.exit_code());
    Err(report)
}
