//! `tenure jobs start`.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::job::{Backoff, Definition, ItemSource, Job, JobOptions, OnFailure};
use tenure_core::lease::Lease;
use tenure_core::{Error, ErrorCode, kernel, rules};
use tenure_runner::jobs::source::{Items, Survey};

use super::session::JobSession;
use super::take_up;
use crate::answer::Answer;
use crate::app::{App, Open, parse_duration};
use crate::gate;
use crate::report::{Outcome, Report};
use crate::text::Text;

/// Run one command over many items, several at a time
///
/// Items come from a JSON array, from JSON lines, or from plain lines. {item} and {item.a.b} are replaced inside any
/// argument, never through a shell; the item is also on the command's standard input. What fails is tried again, and ends
/// in the dead-letter list. Interrupted, the job can be resumed. Exit 1 if anything ended in the dead-letter list.
///
/// Example: tenure jobs start thumbnails --items images.txt --parallel 4 -- ./thumbnail.sh {item}
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's name
    name: String,
    /// Where the items are; - is standard input
    #[arg(long, value_name = "FILE")]
    items: String,
    /// A JSON pointer to the list inside of a document
    #[arg(long, value_name = "POINTER")]
    path: Option<String>,
    /// Only items whose field has this value
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_filter)]
    filter: Vec<(String, String)>,
    /// At most so many items
    #[arg(long, value_name = "N")]
    max_items: Option<u64>,
    /// How many at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    parallel: u32,
    /// How often an item that failed is tried again
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=1000))]
    retries: u32,
    /// The pauses between: from a second on, doubling or not
    #[arg(long, value_name = "HOW", default_value = "exponential", value_parser = ["exponential", "fixed"])]
    backoff: String,
    /// End an item that takes longer; it has failed then
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    item_timeout: Option<Duration>,
    /// What becomes of an item that keeps failing: dlq puts it aside, stop ends the job, skip passes over it
    #[arg(long, value_name = "WHAT", default_value = "dlq", value_parser = ["dlq", "stop", "skip"])]
    on_failure: String,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// So many items are stored in one transaction, unless they are long.
const BATCH_ITEMS: usize = 2_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

fn parse_filter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() => Ok((field.to_owned(), value.to_owned())),
        _ => Err("expected FIELD=VALUE".to_owned()),
    }
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let source = source(app, &args)?;
    let mut items = Items::open(&source)?;
    // All that is wrong with the items is found before anything is stored.
    let survey = items.survey()?;
    let definition = definition(app, &args, source, &survey)?;
    tenure_core::text::check_job_name(&args.name).map_err(Error::from)?;
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!("Would start job {} with {} items", args.name, survey.items));
        return Ok(Answer::new(json!({"job": null, "items": survey.items}), text));
    }
    if survey.items == 0 && survey.seen > 0 {
        app.printer.warn(&format!("none of the {} items is wanted", survey.seen));
    }
    let session = JobSession::new(app, &open)?;
    let id = app.env.ids.uuid();
    let _gate = gate::take(app, &id, false)?;
    let ctx = open.context();
    let terms = session.terms(&open);
    let begun =
        open.write(|tx| rules::begin_job(tx, &ctx, &session.caller, &id, &args.name, &definition, &terms));
    let (_, lease) = begun.map_err(|error| refused(error, &args.name))?;
    let job = match load(&open, &session, &lease, &mut items, &survey) {
        Ok(job) => job,
        Err(report) => {
            // What cannot be undone now, the next start or reconcile does: to everybody else there is no such job.
            let _ = open.write(|tx| rules::drop_job(tx, &ctx, &lease));
            return Err(report);
        }
    };
    drop(items);
    take_up::carry_out(app, &open, &session, &job, &lease)
}

fn source(app: &App<'_>, args: &Args) -> Outcome<ItemSource> {
    let file = match args.items.as_str() {
        "-" => None,
        path => Some(text_of(&app.env.cwd.join(path), "the path of the items")?),
    };
    Ok(ItemSource { file, path: args.path.clone(), filters: args.filter.clone(), max_items: args.max_items })
}

/// It is stored, and shown as JSON.
fn text_of(path: &Path, what: &str) -> Outcome<String> {
    let text = path.to_str().ok_or_else(|| Report::usage(format!("{what} is not UTF-8 text")))?;
    Ok(text.to_owned())
}

fn definition(app: &App<'_>, args: &Args, source: ItemSource, survey: &Survey) -> Outcome<Definition> {
    let unknown = |what: &str| Report::usage(format!("{what} is not known"));
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

/// An unfinished job of that name is not replaced in passing.
fn refused(error: Error, name: &str) -> Report {
    let changed = matches!(error, Error::DefinitionChanged { .. });
    let report = Report::from(error);
    if !changed {
        return report;
    }
    report
        .note("It is not finished, and was started otherwise.")
        .hint("go on with it as it was", format!("tenure resume {name}"))
        .hint("or give it up first", format!("tenure jobs cancel {name}"))
}

/// Stores the items batch by batch. Nobody sees the job before the last of them is there.
fn load(
    open: &Open<'_>,
    session: &JobSession,
    lease: &Lease,
    items: &mut Items,
    survey: &Survey,
) -> Outcome<Job> {
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
            interrupted = session.interrupts.take();
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
    // What was read first is what the job is defined by.
    if read? != *survey {
        return Err(Report::new(ErrorCode::InvalidArguments, "the items changed while they were read"));
    }
    store(&mut batch, &mut first)?;
    Ok(open.write(|tx| rules::publish_job(tx, &ctx, lease))?)
}
