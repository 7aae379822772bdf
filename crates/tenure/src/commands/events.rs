//! `tenure events`: the event feed.

use std::os::fd::AsFd;
use std::time::Duration;

use serde_json::json;
use tenure_core::event::Event;
use tenure_core::id::TaskId;
use tenure_core::store::EventFilter;
use tenure_core::wire;

use super::event_view::{self, Names};
use crate::answer::Answer;
use crate::app::App;
use crate::follow::Follower;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Show the event feed, and with --follow new events as they happen
///
/// Example: tenure events --follow --json
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep printing new events; with --json one object per line
    #[arg(short, long)]
    follow: bool,
    /// Only events after this number
    #[arg(long, value_name = "SEQ")]
    since: Option<i64>,
    /// Only events of this task
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// Maximum number of events
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

/// The shortest time between two reads of the feed.
const PAUSE: Duration = Duration::from_millis(100);
/// The most events that are read at once.
const BATCH: u64 = 1000;

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let open = app.open()?;
    let task = args.task.as_deref().map(|t| open.resolve(t)).transpose()?.map(|t| TaskId::new(t.id));
    let mut filter =
        EventFilter { since: args.since.unwrap_or(0), task, last: args.since.is_none(), limit: args.limit };
    let mut names = Names::default();
    let mut read = |filter: &EventFilter| {
        open.read(|view| {
            let events = view.events(filter)?;
            names.learn(view, &events)?;
            let lines = events.iter().map(|event| line(event, &names)).collect::<Vec<_>>();
            Ok((events, lines))
        })
    };
    let mut follower = args.follow.then(|| Follower::new(&open.store, PAUSE));
    if let Some(follower) = &mut follower {
        follower.begin_read()?;
    }
    let (events, lines) = read(&filter)?;
    let Some(mut follower) = follower else {
        let total = open.read(|view| view.count_events(&filter))?;
        let mut text = Text::new();
        if events.is_empty() {
            text.line("No events.");
        }
        for line in lines {
            text.append(line);
        }
        let rows: Vec<_> = events.iter().map(wire::event).collect();
        return Ok(Some(Answer::new(json!({"events": rows, "total": total}), text)));
    };
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let begun = std::time::Instant::now();
    print(app, &events, &lines, &mut filter);
    filter.last = false;
    filter.limit = BATCH;
    loop {
        let left = app.global.timeout.map(|limit| limit.saturating_sub(begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let woken = follower.wait(&[interrupts.as_fd()], left);
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code).silent());
        }
        if !woken.changed {
            continue;
        }
        follower.begin_read()?;
        loop {
            let (events, lines) = read(&filter)?;
            print(app, &events, &lines, &mut filter);
            if u64::try_from(events.len()).unwrap_or(0) < BATCH {
                break;
            }
        }
    }
}

fn print(app: &mut App<'_>, events: &[Event], lines: &[Text], filter: &mut EventFilter) {
    for (event, line) in events.iter().zip(lines) {
        app.printer.stream(&json!(wire::event(event)), line);
        filter.since = filter.since.max(event.seq);
    }
}

fn line(event: &Event, names: &Names) -> Text {
    let mut text = Text::new();
    text.styled(Style::Dim, format!("{:>6}  {}  ", event.seq, event.at.to_seconds()))
        .and(Style::Plain, format!("{:<21}", event.kind.as_str()))
        .and(Style::Plain, event.actor.clone());
    let subject = names.subject(event);
    if !subject.is_empty() {
        text.and(Style::Bold, format!("  {subject}"));
    }
    if let (Some(from), Some(to)) = (event.from, event.to) {
        text.and(Style::Plain, format!("  {from} → {to}"));
    }
    if let Some(what) = event_view::what(event) {
        text.and(Style::Plain, format!("  {what}"));
    }
    if let Some(fence) = event.fence {
        text.and(Style::Dim, format!("  fence {fence}"));
    }
    for key in ["message", "reason"] {
        if let Some(value) = event.detail.get(key).and_then(|v| v.as_str()) {
            text.and(Style::Plain, format!("  {value}"));
        }
    }
    text
}
