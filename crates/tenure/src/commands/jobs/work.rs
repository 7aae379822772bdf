//! `tenure jobs work`.

use tenure_core::job::JobState;
use tenure_core::reference;

use super::session::JobSession;
use super::view;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};

/// Help with a job that somebody has started: take its items until none is left to take
///
/// Any number of processes may work on one job. Each item is given to one of them.
///
/// Example: tenure jobs work thumbnails --parallel 2
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or the beginning of that
    job: String,
    /// How many items at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    if app.global.dry_run {
        return Err(Report::usage("items cannot be run dry; --dry-run goes with `jobs start`")
            .hint("see what is left to do", format!("tenure jobs show {}", crate::shell::last(&args.job))));
    }
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    if job.state != JobState::Open {
        return Ok(view::answer(&open, &job)?);
    }
    let session = JobSession::new(app, &open)?;
    let summary = session.work(app, &open, &job, None, args.parallel)?;
    match summary.stopped_by {
        Some(signal) => Err(Report::interrupted(u8::try_from(128 + signal).unwrap_or(1))),
        None => Ok(view::answer(&open, &summary.job)?),
    }
}
