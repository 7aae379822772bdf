//! A job as JSON and as text.

use serde_json::{Value, json};
use tenure_core::hints;
use tenure_core::job::{Item, ItemState, Job, JobStatus};
use tenure_core::store::{ItemFilter, View};
use tenure_core::{Result, rules, wire};

use crate::answer::Answer;
use crate::app::Open;
use crate::table::cut_to;
use crate::text::{Style, Text};

/// Maximum number of dead letters shown with a job.
pub(super) const DEAD_LETTERS: u64 = 100;

pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

fn status(view: &dyn View, open: &Open<'_>, job: &Job) -> Result<JobStatus> {
    Ok(job.status(rules::jobs_at_work(view, &open.context())?.contains(&job.id)))
}

pub(super) fn style(status: JobStatus) -> Style {
    match status {
        JobStatus::Running | JobStatus::Completed => Style::Good,
        JobStatus::Interrupted => Style::Warn,
        JobStatus::Failed => Style::Bad,
        JobStatus::Cancelled => Style::Plain,
    }
}

/// The job with its first dead letters and their attempts.
pub(super) fn whole(view: &dyn View, open: &Open<'_>, job: &Job, limit: u64) -> Result<(JobStatus, Value)> {
    let status = status(view, open, job)?;
    let mut letters = Vec::new();
    for item in dead_letters(view, job, limit)? {
        let attempts = view.attempts(&item.resource())?;
        letters.push((item, attempts));
    }
    Ok((status, json!(wire::job(job, status, &letters))))
}

fn dead_letters(view: &dyn View, job: &Job, limit: u64) -> Result<Vec<Item>> {
    view.items(&ItemFilter { job: Some(job.id.clone()), state: Some(ItemState::Failed), after: 0, limit })
}

/// The answer of a command that ran items. Exits 1 if there are dead letters.
pub(super) fn answer(open: &Open<'_>, job: &Job) -> Result<Answer> {
    let (status, object) = open.read(|view| whole(view, open, job, DEAD_LETTERS))?;
    let mut text = Text::new();
    text.styled(Style::Plain, format!("Job {} ({}) ", job.name, short(&job.id)))
        .and(style(status), status.as_str())
        .and(Style::Plain, format!(": {}", super::progress::sentence(job)));
    if let Some(letters) = object["deadLetter"].as_array() {
        letter_lines(&mut text, letters, job.counts.failed);
    }
    let answer = Answer::new(serde_json::json!({"job": object}), text).exit(u8::from(job.counts.failed > 0));
    let again = tenure_core::job::JobState::Cancelled != job.state;
    Ok(match (job.counts.failed > 0 && again, status) {
        (true, _) => answer.hint(hints::retry_dead_letters(short(&job.id))),
        (false, JobStatus::Interrupted) => answer.hint(hints::resume(short(&job.id))),
        _ => answer,
    })
}

/// How many columns of an item's value are shown with its number.
const VALUE_WIDTH: usize = 40;

/// The value of an item, ` (page.html)`. It is null if it is too long for the JSON, and then left out.
fn in_brackets(value: &Value) -> String {
    let shown = match value {
        Value::Null => return String::new(),
        Value::String(text) => cut_to(text, VALUE_WIDTH),
        other => cut_to(&other.to_string(), VALUE_WIDTH),
    };
    format!(" ({shown})")
}

pub(super) fn letter_lines(text: &mut Text, letters: &[Value], all: u64) {
    if letters.is_empty() {
        return;
    }
    text.styled(Style::Bold, "Dead letters:");
    for letter in letters {
        let why = letter["error"].as_str().unwrap_or("it failed");
        let tries = letter["failures"].as_u64().unwrap_or(0);
        let times = if tries == 1 { "once".to_owned() } else { format!("{tries} times") };
        text.styled(Style::Bad, format!("  item {}", letter["item"]))
            .and(Style::Plain, format!("{} tried {times}: {why}", in_brackets(&letter["value"])));
        if let Some(path) = letter["logPath"].as_str() {
            text.styled(Style::Dim, format!("    log: {path}"));
        }
    }
    let shown = letters.len() as u64;
    if all > shown {
        text.line(format!("  … and {} more", all - shown));
    }
}
