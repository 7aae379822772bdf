//! `tenure jobs retry`.

use tenure_core::job::JobState;
use tenure_core::reference;

use super::take_up::{self, ResumeOptions};
use super::view::short;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{Outcome, Report};

/// Try the dead letters of a job again, and what else of it is left
///
/// Example: tenure jobs retry thumbnails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or the beginning of that
    job: String,
    /// Go on although the list of items has changed
    #[arg(long)]
    accept_changes: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    if job.state == JobState::Cancelled {
        return Err(Report::usage(format!("job {} was cancelled", job.name))
            .hint("see what it has done", format!("tenure jobs show {}", short(&job.id))));
    }
    let options =
        ResumeOptions { retry_failed: true, accept_changes: args.accept_changes, ..ResumeOptions::default() };
    take_up::resume(app, &open, &job, options)
}
