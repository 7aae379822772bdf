//! `tenure start-attempt`: the process that a supervisor starts. It checks the attempt once more and then execs the
//! command.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::Command;

use tenure_core::ErrorCode;
use tenure_runner::ExecRefused;

use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};

/// Exec the command of the attempt in TENURE_ATTEMPT, if that is still running (used internally)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let Some(mark) = app.env.var("TENURE_ATTEMPT") else {
        return Err(Report::usage("TENURE_ATTEMPT is not set; this command is for internal use"));
    };
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Report::usage("no command given"));
    };
    let open = app.open()?;
    let mut command = Command::new(program);
    command.args(rest);
    let sockets = (!std::io::stdin().is_terminal()).then(|| crate::store::sockets(app.env));
    let judge = app.env.judge.as_ref();
    let not =
        tenure_runner::exec_if_running(open.store.as_ref(), judge, mark, sockets.as_deref(), &mut command);
    let mut report = match &not {
        ExecRefused::Over => {
            Report::new(ErrorCode::LeaseLost, "the attempt ended before its command started")
        }
        // The supervisor reports the reason, from the attempt's row.
        ExecRefused::Failed(_) => Report::new(ErrorCode::General, ""),
        ExecRefused::Store(error) => Report::new(error.code(), error.to_string()),
    };
    report.exit = Some(not.exit_code());
    Err(report)
}
