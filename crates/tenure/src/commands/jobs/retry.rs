//! `tenure jobs retry`.

use tenure_core::hints;
use tenure_core::job::JobState;
use tenure_core::reference;

use super::resume::{self, ResumeOptions};
use super::view::short;
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};

/// Retry a job's dead letters, and run its remaining items
///
/// Example: tenure jobs retry thumbnails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or a prefix of the id
    job: String,
    /// Retry although the list of items has changed
    #[arg(long)]
    accept_changes: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    if job.state == JobState::Cancelled {
        return Err(Report::usage(format!("job {} was cancelled", job.name))
            .hint(hints::show_results(short(&job.id))));
    }
    let options =
        ResumeOptions { retry_failed: true, accept_changes: args.accept_changes, ..ResumeOptions::default() };
    resume::resume(app, &open, &job, options)
}
