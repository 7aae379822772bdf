//! Resumes a job under its resume lock and its lease, with its original definition, from where it was interrupted.

use serde_json::json;
use tenure_core::hints;
use tenure_core::job::{Definition, Job, JobState};
use tenure_core::lease::Lease;
use tenure_core::rules::{self, TakeUp, TakenUp};
use tenure_core::{Error, kernel};
use tenure_runner::jobs::source::Items;
use tenure_runner::{Scope, reap_attempts};

use super::job_process::JobProcess;
use super::view::{self, short};
use super::{merge, progress};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::printer::CommandName;
use crate::report::{CommandResult, Report};
use crate::resume_lock;
use crate::text::Text;

/// The flags of `tenure resume`.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::commands) struct ResumeOptions {
    pub(in crate::commands) force: bool,
    pub(in crate::commands) retry_failed: bool,
    pub(in crate::commands) accept_changes: bool,
    /// Set in the background process of `--detach`: the command whose answer it prints as soon as it holds the job.
    pub(in crate::commands) detached: Option<CommandName<'static>>,
}

pub(in crate::commands) fn resume(
    app: &mut App<'_>,
    open: &Open<'_>,
    job: &Job,
    options: ResumeOptions,
) -> CommandResult<Option<Answer>> {
    crate::tracked::refuse(app.env, &open.paths)?;
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!("Would resume job {} ({}): {}", job.name, short(&job.id), progress::sentence(job)));
        let object = open.read(|view| view::whole(view, open, job, 0))?.1;
        return Ok(Some(Answer::new(json!({"job": object}), text)));
    }
    let process = JobProcess::new(app, open)?;
    let _resume_lock = resume_lock::acquire(app, &job.id, options.force)?;
    let changed = changes(app, job, options)?;
    clean_up(app, open, &process)?;
    let (job, lease) = match take(open, &process, job, options)? {
        Ok(taken) => taken,
        Err(finished) => return finished_already(open, &finished).map(Some),
    };
    let job = match changed {
        Some((mut items, definition)) => merge::apply(open, &lease, &job, &mut items, &definition)?,
        None => job,
    };
    if let Some(name) = options.detached {
        let object = open.read(|view| view::whole(view, open, &job, 0))?.1;
        app.printer.answer(name, &Answer::new(json!({"job": object}), Text::new()));
        crate::sys::leave_streams();
        // Standard output is closed; the result is in the job's rows.
        return carry_out(app, open, &process, &job, &lease).map(|_| None);
    }
    carry_out(app, open, &process, &job, &lease).map(Some)
}

/// Closes the leases of an earlier coordinator and reaps the processes of its items.
fn clean_up(app: &mut App<'_>, open: &Open<'_>, process: &JobProcess) -> CommandResult<()> {
    let (ctx, actor) = (open.context(), &process.caller.holder.id);
    open.write(|tx| kernel::reconcile(tx, &ctx, actor))?;
    let cleared = reap_attempts(open.store.as_ref(), &ctx, Scope::Abandoned, actor)?;
    for survivor in &cleared.survivors {
        app.printer.warn(&format!("a process of an ended attempt cannot be killed: {survivor}"));
    }
    Ok(())
}

/// Makes this process the job's coordinator. Returns the job as `Err` if it is finished.
pub(super) fn take(
    open: &Open<'_>,
    process: &JobProcess,
    job: &Job,
    options: ResumeOptions,
) -> CommandResult<Result<(Job, Lease), Job>> {
    let (ctx, terms) = (open.context(), process.terms(open));
    let how = TakeUp { retry_failed: options.retry_failed };
    let taken = open.write(|tx| {
        if options.force {
            kernel::evict_unless_alive(tx, &ctx, &job.resource(), &process.caller.holder.id)?;
        }
        rules::take_up_job(tx, &ctx, &process.caller, &job.id, &terms, how)
    })?;
    match taken {
        TakenUp::Yours(job, lease) => Ok(Ok((*job, *lease))),
        TakenUp::Finished(job) => Ok(Err(*job)),
        TakenUp::Refused(locked) => Err(Error::Locked(locked).into()),
    }
}

/// Runs the remaining items and returns the result.
pub(super) fn carry_out(
    app: &mut App<'_>,
    open: &Open<'_>,
    process: &JobProcess,
    job: &Job,
    lease: &Lease,
) -> CommandResult<Answer> {
    let summary = process.work(app, open, job, Some(lease), job.definition.options.parallel)?;
    let answer = view::answer(open, &summary.job)?;
    let Some(signal) = summary.stopped_by.filter(|_| summary.job.state == JobState::Open) else {
        return Ok(answer);
    };
    let mut report = Report::interrupted(u8::try_from(128 + signal).unwrap_or(1));
    report.message = format!("interrupted; {}", progress::sentence(&summary.job));
    *report.details = answer.data;
    Err(report.hint(hints::resume(short(&job.id))))
}

fn finished_already(open: &Open<'_>, job: &Job) -> CommandResult<Answer> {
    let mut answer = view::answer(open, job)?;
    // Nothing was run, so nothing failed.
    answer.exit = 0;
    Ok(answer)
}

/// The changed items and definition, if the list of items has changed and `--accept-changes` was given.
fn changes(
    app: &mut App<'_>,
    job: &Job,
    options: ResumeOptions,
) -> CommandResult<Option<(Items, Definition)>> {
    let left = job.counts.pending + job.counts.running;
    let nothing_to_do = left == 0 && !(options.retry_failed && job.counts.failed > 0);
    if job.definition.source.file.is_none() || nothing_to_do || job.state == JobState::Cancelled {
        return Ok(None);
    }
    let list = job.definition.source.file.as_deref().unwrap_or_default();
    if !std::path::Path::new(list).exists() {
        app.printer.warn(&format!("{list} no longer exists; continuing with the stored items"));
        return Ok(None);
    }
    let mut items = Items::open(&job.definition.source)?;
    let survey = items.survey()?;
    let definition = Definition { items_hash: survey.hash, items: survey.items, ..job.definition.clone() };
    let changes = job.definition.changes_to(&definition);
    if changes.is_empty() {
        return Ok(None);
    }
    if options.accept_changes {
        return Ok(Some((items, definition)));
    }
    let error = Error::DefinitionChanged { what: format!("job {}", job.name), changes };
    let report = Report::from(error).note(format!("The items are in {list}."));
    Err(report.hint(hints::accept_items(short(&job.id))))
}
