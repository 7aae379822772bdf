//! `tenure start-exclusive`: takes the exclusive lock over from `exclusive run` and then execs the command.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use tenure_core::ErrorCode;
use tenure_lock::ExclusiveLock;
use tenure_runner::{exclusion, exec};

use super::failed;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};

/// The project's folder.
pub(super) const ROOT: &str = "TENURE_EXCLUSIVE_ROOT";
/// The text of the lock that is taken over.
pub(super) const LOCK: &str = "TENURE_EXCLUSIVE_LOCK";

/// Take the exclusive lock over and exec the command (used internally)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let (Some(root), Some(text)) = (app.env.vars.get(&OsString::from(ROOT)), app.env.var(LOCK)) else {
        return Err(Report::usage(format!("{LOCK} is not set; this command is for internal use")));
    };
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Report::usage("no command given"));
    };
    let theirs = ExclusiveLock::parse(text.as_bytes()).map_err(|e| Report::usage(e.to_string()))?;
    // The pid and the start time of a process do not change with exec.
    if !exclusion::replace(Path::new(root), &theirs, &theirs.handed_to_this_process()).map_err(failed)? {
        return Err(Report::new(
            ErrorCode::ExclusiveLocked,
            "the exclusive lock was taken by another holder",
        ));
    }
    let error = exec(Command::new(program).args(rest).env_remove(ROOT).env_remove(LOCK));
    let mut report =
        Report::new(ErrorCode::General, format!("cannot run {}: {error}", program.to_string_lossy()));
    report.exit = Some(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 });
    Err(report)
}
