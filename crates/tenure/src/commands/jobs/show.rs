//! `tenure jobs show`.

use serde_json::json;
use tenure_core::hints;
use tenure_core::{ErrorCode, reference, wire};

use super::progress::sentence;
use super::view::{self, short, style};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Show a job with its dead letters, or one of its items with all attempts
///
/// Example: tenure jobs show thumbnails --item 17
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job: its name, its id, or a prefix of the id
    job: String,
    /// Only this item
    #[arg(long, value_name = "N")]
    item: Option<u64>,
    /// Maximum number of dead letters
    #[arg(long, value_name = "N", default_value_t = view::DEAD_LETTERS)]
    limit: u64,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let job = open.read(|view| reference::job(view, &args.job))?;
    if let Some(number) = args.item {
        let found = open.read(|view| {
            let Some(item) = view.item(&job.id, number)? else { return Ok(None) };
            let history = view.attempts(&item.resource())?;
            Ok(Some((item, history)))
        })?;
        let Some((item, history)) = found else {
            let message = format!("job {} has no item {number}", job.name);
            return Err(Report::new(ErrorCode::JobNotFound, message).hint(hints::show_job(short(&job.id))));
        };
        let mut text = Text::new();
        text.styled(Style::Bold, format!("Item {number} of {}", job.name))
            .and(Style::Plain, format!(" is {}", item.state));
        let shown: String = item.payload.chars().take(500).collect();
        text.line(format!("  {shown}{}", if shown.len() < item.payload.len() { "…" } else { "" }));
        for attempt in &history {
            let how = attempt.reason.as_deref().unwrap_or("running");
            text.line(format!("  {}  {how}", app.local_time().seconds(attempt.started_at)));
            if let Some(path) = &attempt.log_path {
                text.styled(Style::Dim, format!("    log: {path}"));
            }
        }
        return Ok(Answer::new(json!({"item": wire::item(&item, &history), "jobId": job.id}), text));
    }
    let (status, object) = open.read(|view| view::whole(view, &open, &job, args.limit))?;
    let mut text = Text::new();
    text.styled(Style::Bold, job.name.clone())
        .and(Style::Plain, format!(" ({}) ", short(&job.id)))
        .and(style(status), status.as_str());
    text.line(format!("  Items:   {}, {} left", sentence(&job), job.counts.pending + job.counts.running));
    text.line(format!("  Command: {}", job.definition.command.join(" ")));
    text.line(format!("  Folder:  {}", job.definition.workdir));
    if let Some(file) = &job.definition.source.file {
        text.line(format!("  List:    {file}"));
    }
    text.line(format!("  Started: {}", app.local_time().seconds(job.created_at)));
    if let Some(letters) = object["deadLetter"].as_array() {
        view::letter_lines(&mut text, letters, job.counts.failed);
    }
    Ok(Answer::new(json!({"job": object}), text))
}
