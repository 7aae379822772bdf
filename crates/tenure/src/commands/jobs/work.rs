//! `tenure jobs work`.

use tenure_core::hints;
use tenure_core::job::JobState;
use tenure_core::reference;

use super::job_process::JobProcess;
use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};

/// Join a running job as a worker, until no items are left to run
///
/// Any number of processes can work on one job. Each item is run by one of them.
///
/// Example: tenure jobs work thumbnails --parallel 2
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or a prefix of the id
    job: String,
    /// How many items run at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if app.global.dry_run {
        return Err(Report::usage("`jobs work` does not support --dry-run; use it with `jobs start`")
            .hint(hints::show_remaining(crate::shell_quote::last_arg(&args.job))));
    }
    let open = app.open()?;
    crate::tracked::refuse(app.env, &open.paths)?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    if job.state != JobState::Open {
        return Ok(view::answer(&open, &job)?);
    }
    let process = JobProcess::new(app, &open)?;
    let summary = process.work(app, &open, &job, None, args.parallel)?;
    match summary.stopped_by {
        Some(signal) => Err(Report::interrupted(u8::try_from(128 + signal).unwrap_or(1))),
        None => Ok(view::answer(&open, &summary.job)?),
    }
}
