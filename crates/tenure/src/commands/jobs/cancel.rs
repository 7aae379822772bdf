//! `tenure jobs cancel`.

use serde_json::json;
use tenure_core::job::JobState;
use tenure_core::{reference, rules};
use tenure_runner::{Scope, reap_attempts};

use super::job_process::JobProcess;
use super::resume::{self, ResumeOptions};
use super::view::{self, short};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::resume_lock;
use crate::text::{Style, Text};

/// Cancel a job permanently, and end its running items
///
/// A job with a running coordinator cannot be cancelled: stop that process first (Ctrl+C).
///
/// Example: tenure jobs cancel thumbnails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or a prefix of the id
    job: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    let mut text = Text::new();
    if app.global.dry_run {
        text.line(format!("Would cancel job {} ({})", job.name, short(&job.id)));
        let object = open.read(|view| view::whole(view, &open, &job, 0))?.1;
        return Ok(Answer::new(json!({"job": object}), text));
    }
    let process = JobProcess::new(app, &open)?;
    let _resume_lock = resume_lock::acquire(app, &job.id, false)?;
    let cancelled = match resume::take(&open, &process, &job, ResumeOptions::default())? {
        Ok((_, lease)) => {
            let ctx = open.context();
            let cancelled = open.write(|tx| rules::cancel_job(tx, &ctx, &lease))?;
            let actor = &process.caller.holder.id;
            let cleared = reap_attempts(open.store.as_ref(), &ctx, Scope::Abandoned, actor)?;
            for survivor in &cleared.survivors {
                app.printer.warn(&format!("a process of an ended attempt cannot be killed: {survivor}"));
            }
            cancelled
        }
        Err(finished) if finished.state == JobState::Cancelled => finished,
        Err(finished) => {
            let message = format!("job {} is already {}", finished.name, finished.state);
            return Err(Report::usage(message));
        }
    };
    text.styled(Style::Warn, "Cancelled").and(
        Style::Plain,
        format!(
            " job {} ({}): {}",
            cancelled.name,
            short(&cancelled.id),
            super::progress::sentence(&cancelled)
        ),
    );
    let object = open.read(|view| view::whole(view, &open, &cancelled, view::DEAD_LETTERS))?.1;
    Ok(Answer::new(json!({"job": object}), text))
}
