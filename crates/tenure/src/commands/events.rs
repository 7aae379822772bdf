//! `tenure events`: the event feed.

use std::time::Duration;

use serde_json::json;
use tenure_core::event::{Event, EventKind};
use tenure_core::event_text::{self, Names};
use tenure_core::id::TaskId;
use tenure_core::store::{EventFilter, View};
use tenure_core::wire;

use super::since::Since;
use super::tasks::view;
use crate::answer::Answer;
use crate::app::App;
use crate::follow::Follower;
use crate::interrupt::Interrupts;
use crate::local_time::LocalTime;
use crate::report::{CommandResult, Report};
use crate::table::cut_to;
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// Show the event feed, and with --follow new events as they happen
///
/// Example: tenure events --kind task.status --since 1h
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep printing new events (old ones only with --since); with --json one object per line
    #[arg(short, long)]
    follow: bool,
    /// Only events after this number, within this time (10m), or at or after this time (2026-11-16T09:00:00Z)
    #[arg(long, value_name = "WHEN", value_parser = parse_start)]
    since: Option<Start>,
    /// Only events of this kind, such as task.status, or of a group of kinds, such as task (repeat for more)
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
    /// Only events that this agent, runner or person has caused
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only events of this task
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// Maximum number of events
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
}

#[derive(Debug, Clone, Copy)]
enum Start {
    After(i64),
    Since(Since),
}

fn parse_start(text: &str) -> Result<Start, String> {
    match text.parse() {
        Ok(number) => Ok(Start::After(number)),
        Err(_) => Since::parse(text)
            .map(Start::Since)
            .map_err(|error| format!("write the number of an event, or a time: {error}")),
    }
}

/// A title with less room than this is left out.
const SHORTEST_TITLE: usize = 10;
/// The shortest time between two reads of the feed.
const PAUSE: Duration = Duration::from_millis(100);
/// The most events that are read at once.
const BATCH: u64 = 1000;

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let kinds = kinds(&args.kind)?;
    let open = app.open()?;
    let task = args.task.as_deref().map(|t| open.resolve(t)).transpose()?.map(|t| TaskId::new(t.id));
    let mut filter = EventFilter {
        since: 0,
        not_before: None,
        task,
        kinds,
        actor: args.agent.clone(),
        last: !matches!(args.since, Some(Start::After(_))),
        may_lack_events: false,
        limit: args.limit,
    };
    match args.since {
        Some(Start::After(number)) => filter.since = number,
        Some(Start::Since(since)) => filter.not_before = Some(since.resolve(app.env.clock.now())),
        None if args.follow => filter.since = open.read(|view| newest(view, 0))?,
        None => {}
    }
    let mut names = Names::default();
    let (time, room) = (app.local_time(), app.printer.render_options().width);
    // On PostgreSQL the events are read in an exclusive turn, which the names do not need.
    let mut read = |filter: &EventFilter| -> CommandResult<_> {
        let events = open.read(|view| view.events(filter))?;
        open.read(|view| names.learn(view, &events))?;
        let lines = lines(&events, &names, &time, room);
        Ok((events, lines))
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
        let woken = follower.wait(&[interrupts.fd()], left);
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code).silent());
        }
        if !woken.changed {
            continue;
        }
        follower.begin_read()?;
        // Read before the events, so that no later event is skipped.
        let passed = if is_selective(&filter) { open.read(|view| newest(view, filter.since))? } else { 0 };
        loop {
            let (events, lines) = read(&filter)?;
            print(app, &events, &lines, &mut filter);
            if u64::try_from(events.len()).unwrap_or(0) < BATCH {
                break;
            }
        }
        filter.since = filter.since.max(passed);
    }
}

/// Whether the filter leaves events out. Their numbers are remembered, so that they are not read again.
fn is_selective(filter: &EventFilter) -> bool {
    !filter.kinds.is_empty() || filter.actor.is_some()
}

/// The kinds that these words name: a kind, or the part before its dot.
fn kinds(words: &[String]) -> CommandResult<Vec<EventKind>> {
    let mut chosen = Vec::new();
    for word in words {
        let fits = |kind: &EventKind| {
            let name = kind.as_str();
            name == word || name.split('.').next() == Some(word)
        };
        let found: Vec<EventKind> = EventKind::ALL.iter().copied().filter(fits).collect();
        if found.is_empty() {
            let all: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
            return Err(Report::usage(format!("unknown event kind {word:?}"))
                .note(format!("The kinds are {}.", all.join(", "))));
        }
        chosen.extend(found);
    }
    Ok(chosen)
}

/// The number of the newest event.
fn newest(view: &dyn View, since: i64) -> tenure_core::Result<i64> {
    let last = EventFilter { since, last: true, limit: 1, ..EventFilter::default() };
    Ok(view.events(&last)?.last().map_or(since, |event| event.seq))
}

fn print(app: &mut App<'_>, events: &[Event], lines: &[Text], filter: &mut EventFilter) {
    for (event, line) in events.iter().zip(lines) {
        app.printer.stream(&json!(wire::event(event)), line);
        filter.since = filter.since.max(event.seq);
    }
}

fn lines(events: &[Event], names: &Names, time: &LocalTime, room: Option<usize>) -> Vec<Text> {
    let ids = ShortIds::of(events.iter().map(|event| event.actor.as_str()));
    events.iter().map(|event| line(event, names, ids, time, room)).collect()
}

fn line(event: &Event, names: &Names, ids: ShortIds, time: &LocalTime, room: Option<usize>) -> Text {
    let mut text = Text::new();
    text.styled(Style::Dim, format!("{:>6}  {}  ", event.seq, time.seconds(event.at)))
        .and(Style::Plain, format!("{:<21}", event.kind.as_str()))
        .and(Style::Plain, ids.show(&event.actor));
    let subject = names.subject(event);
    if !subject.is_empty() {
        text.and(Style::Bold, format!("  {subject}"));
    }
    let rest = rest(event);
    if let Some(title) = names.title(event) {
        // The title gets the rest of the line.
        let left = room.map(|room| room.saturating_sub(text.last_width() + rest.last_width() + 1));
        match left {
            None => text.and(Style::Plain, format!(" {title}")),
            Some(left) if left >= SHORTEST_TITLE => {
                text.and(Style::Plain, format!(" {}", cut_to(title, left)))
            }
            Some(_) => &mut text,
        };
    }
    text.join(rest).hang(8);
    text
}

/// The change that the event records.
fn rest(event: &Event) -> Text {
    let mut text = Text::new();
    if let (Some(from), Some(to)) = (event.from, event.to) {
        text.and(Style::Plain, format!("  {from} → ")).and(view::style(to), to.as_str());
    }
    if let Some(what) = event_text::what(event) {
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
