//! `tenure jobs cancel`.

use serde_json::json;
use tenure_core::job::JobState;
use tenure_core::{reference, rules};
use tenure_runner::{Scope, finish_ending};

use super::session::JobSession;
use super::take_up::{self, ResumeOptions};
use super::view::{self, short};
use crate::answer::Answer;
use crate::app::App;
use crate::gate;
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

/// Give a job up for good; what workers have of it is ended
///
/// A job that somebody coordinates is not cancelled under its hands: stop that process first (Ctrl+C).
///
/// Example: tenure jobs cancel thumbnails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or the beginning of that
    job: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    let mut text = Text::new();
    if app.global.dry_run {
        text.line(format!("Would cancel job {} ({})", job.name, short(&job.id)));
        let object = open.read(|view| view::whole(view, &open, &job, 0))?.1;
        return Ok(Answer::new(json!({"job": object}), text));
    }
    let session = JobSession::new(app, &open)?;
    let _gate = gate::take(app, &job.id, false)?;
    let cancelled = match take_up::take(&open, &session, &job, ResumeOptions::default())? {
        Ok((_, lease)) => {
            let ctx = open.context();
            let cancelled = open.write(|tx| rules::cancel_job(tx, &ctx, &lease))?;
            let actor = &session.caller.holder.id;
            let cleared = finish_ending(open.store.as_ref(), &ctx, Scope::Abandoned, actor)?;
            for survivor in &cleared.survivors {
                app.printer.warn(&format!("a process of an ended attempt does not die: {survivor}"));
            }
            cancelled
        }
        Err(finished) if finished.state == JobState::Cancelled => finished,
        Err(finished) => {
            let message = format!("job {} is over already: it is {}", finished.name, finished.state);
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
