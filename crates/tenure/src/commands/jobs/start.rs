//! `tenure jobs start`.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::hints;
use tenure_core::job::{Backoff, Definition, ItemSource, Job, JobOptions, OnFailure};
use tenure_core::lease::Lease;
use tenure_core::{Error, ErrorCode, kernel, rules};
use tenure_runner::jobs::source::{Items, Survey};

use super::job_process::JobProcess;
use super::resume;
use crate::answer::Answer;
use crate::app::{App, Open, parse_duration};
use crate::report::{CommandResult, Report};
use crate::resume_lock;
use crate::text::Text;

/// Run one command over many items, several at a time
///
/// Items are read from a JSON array, JSON lines or plain lines. {item} and {item.a.b} are replaced in every argument,
/// without a shell; the item is also passed on standard input. A failed item is retried, and finally goes to the
/// dead-letter list. An interrupted job can be resumed. Exits 1 if there are dead letters.
///
/// Example: tenure jobs start thumbnails --items images.txt --parallel 4 -- ./thumbnail.sh {item}
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's name
    name: String,
    /// The file with the items; - reads standard input
    #[arg(long, value_name = "FILE")]
    items: String,
    /// A JSON pointer to the list inside the document
    #[arg(long, value_name = "POINTER")]
    path: Option<String>,
    /// Only items whose field has this value
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_filter)]
    filter: Vec<(String, String)>,
    /// Maximum number of items
    #[arg(long, value_name = "N")]
    max_items: Option<u64>,
    /// How many items run at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
    /// How many times a failed item is retried
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1000))]
    retries: u32,
    /// The delay between retries: starts at one second, doubling (exponential) or constant (fixed)
    #[arg(long, value_name = "HOW", default_value = "exponential", value_parser = ["exponential", "fixed"])]
    backoff: String,
    /// End an item that takes longer than this; it counts as failed
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    item_timeout: Option<Duration>,
    /// What to do with an item that keeps failing: dlq (dead-letter list), stop (end the job) or skip
    #[arg(long, value_name = "WHAT", default_value = "dlq", value_parser = ["dlq", "stop", "skip"])]
    on_failure: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Maximum number of items, and of their bytes, in one transaction.
const BATCH_ITEMS: usize = 2_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

fn parse_filter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() => Ok((field.to_owned(), value.to_owned())),
        _ => Err("expected FIELD=VALUE".to_owned()),
    }
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let source = source(app, &args)?;
    let mut items = Items::open(&source)?;
    // Errors in the items are found before anything is stored.
    let survey = items.survey()?;
    let definition = definition(app, &args, source, &survey)?;
    tenure_core::text::check_job_name(&args.name).map_err(Error::from)?;
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!("Would start job {} with {} items", args.name, survey.items));
        return Ok(Answer::new(json!({"job": null, "items": survey.items}), text));
    }
    if survey.items == 0 && survey.seen > 0 {
        app.printer.warn(&format!("none of the {} items matches", survey.seen));
    }
    let process = JobProcess::new(app, &open)?;
    let id = app.env.ids.uuid();
    let _resume_lock = resume_lock::acquire(app, &id, false)?;
    let ctx = open.context();
    let terms = process.terms(&open);
    let begun =
        open.write(|tx| rules::begin_job(tx, &ctx, &process.caller, &id, &args.name, &definition, &terms));
    let (_, lease) = begun.map_err(|error| refused(error, &args.name))?;
    let job = match load(&open, &process, &lease, &mut items, &survey) {
        Ok(job) => job,
        Err(report) => {
            // If this fails, the next start or reconcile drops the job. Until its items are complete it is visible to no
            // other process.
            let _ = open.write(|tx| rules::drop_job(tx, &ctx, &lease));
            return Err(report);
        }
    };
    drop(items);
    resume::carry_out(app, &open, &process, &job, &lease)
}

fn source(app: &App<'_>, args: &Args) -> CommandResult<ItemSource> {
    let file = match args.items.as_str() {
        "-" => None,
        path => Some(text_of(&app.env.cwd.join(path), "the path of the items file")?),
    };
    Ok(ItemSource { file, path: args.path.clone(), filters: args.filter.clone(), max_items: args.max_items })
}

/// The path as UTF-8, because it is stored and shown as JSON.
fn text_of(path: &Path, what: &str) -> CommandResult<String> {
    let text = path.to_str().ok_or_else(|| Report::usage(format!("{what} is not UTF-8 text")))?;
    Ok(text.to_owned())
}

fn definition(app: &App<'_>, args: &Args, source: ItemSource, survey: &Survey) -> CommandResult<Definition> {
    let unknown = |what: &str| Report::usage(format!("{what} is not a known value"));
    if args.item_timeout == Some(Duration::ZERO) {
        return Err(Report::usage("an item timeout of 0s would end every item at once"));
    }
    Ok(Definition {
        command: args.command.clone(),
        workdir: text_of(&app.env.cwd, "the current folder")?,
        source,
        items_hash: survey.hash.clone(),
        items: survey.items,
        options: JobOptions {
            parallel: args.parallel,
            retries: args.retries,
            backoff: Backoff::parse(&args.backoff).ok_or_else(|| unknown(&args.backoff))?,
            item_timeout_ms: args.item_timeout.map(tenure_core::wire::millis),
            on_failure: OnFailure::parse(&args.on_failure).ok_or_else(|| unknown(&args.on_failure))?,
        },
    })
}

/// The error for a name that an unfinished job uses: that job is not replaced.
fn refused(error: Error, name: &str) -> Report {
    let changed = matches!(error, Error::DefinitionChanged { .. });
    let report = Report::from(error);
    if !changed {
        return report;
    }
    report
        .note("It is not finished, and its definition is different.")
        .hint(hints::resume_unchanged(name))
        .hint(hints::cancel_job(name))
}

/// Stores the items in batches. The job becomes visible with the last one.
fn load(
    open: &Open<'_>,
    process: &JobProcess,
    lease: &Lease,
    items: &mut Items,
    survey: &Survey,
) -> CommandResult<Job> {
    let ctx = open.context();
    let mut batch: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut first = 1;
    let mut interrupted = None;
    let store = |batch: &mut Vec<String>, first: &mut u64| -> tenure_core::Result<()> {
        open.write(|tx| {
            kernel::renew_resource(tx, &ctx, lease, None)?;
            rules::load_items(tx, &ctx, lease, *first, batch)
        })?;
        *first += batch.len() as u64;
        batch.clear();
        Ok(())
    };
    let read = items.survey_with(&mut |payload| {
        bytes += payload.len();
        batch.push(payload);
        if batch.len() >= BATCH_ITEMS || bytes >= BATCH_BYTES {
            bytes = 0;
            interrupted = process.interrupts.take();
            if interrupted.is_some() {
                return Err(Error::General("interrupted".to_owned()));
            }
            store(&mut batch, &mut first)?;
        }
        Ok(())
    });
    if let Some(code) = interrupted {
        return Err(Report::interrupted(code));
    }
    // The definition has the hash of the first pass over the items.
    if read? != *survey {
        return Err(Report::new(ErrorCode::InvalidArguments, "the items changed while they were being read"));
    }
    store(&mut batch, &mut first)?;
    Ok(open.write(|tx| rules::publish_job(tx, &ctx, lease))?)
}
