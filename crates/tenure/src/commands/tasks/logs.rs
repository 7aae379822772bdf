//! `tenure tasks logs`.

use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::lease::{Attempt, AttemptState};
use tenure_core::{Timestamp, wire};
use tenure_runner::transcript::{Entry, EntryKind, Transcript, split_time};
use tenure_runner::{LogReader, LogWatch};

use super::attempt_log;
use crate::app::{App, Open};
use crate::commands::usage_view;
use crate::follow::Follower;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

/// Show what an agent did: its messages, its tools and what it used
///
/// A tool is shown with the first lines of its output. With --json, each line is one object.
///
/// Example: tenure tasks logs F001 --follow
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    /// Keep printing until the attempt has ended
    #[arg(short, long)]
    follow: bool,
    /// Print the lines as the agent printed them
    #[arg(long)]
    raw: bool,
    /// The number of the attempt, counted from the oldest (default: the latest with a log)
    #[arg(long, value_name = "N")]
    attempt: Option<usize>,
}

/// The shortest time between two reads of the log.
const LOG_PAUSE: Duration = Duration::from_millis(100);
/// The shortest time between two reads of the attempt.
const STORE_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<()> {
    if args.raw && app.printer.json {
        return Err(Report::usage("--raw prints the lines as they are and cannot be used with --json"));
    }
    let open = app.open()?;
    let task = open.resolve(&args.task)?;
    let (mut attempt, path) = attempt_log::find(&open, &task, args.attempt)?;
    let mut reader = LogReader::open(&path).map_err(|e| attempt_log::cannot_open(&e, &task, &path))?;
    let mut output =
        LogPrinter { task: &task, raw: args.raw, transcript: Transcript::new(attempt.agent.as_deref()) };
    if !args.follow {
        app.printer.page();
    }
    let interrupts = args.follow.then(Interrupts::listen).transpose().map_err(Report::from)?;
    let begun = Instant::now();
    let mut following = args.follow.then(|| (LogWatch::new(&path), Follower::new(&open.store, STORE_PAUSE)));
    if let Some((_, follower)) = &mut following {
        follower.begin_read()?;
        attempt = read_again(&open, attempt)?;
    }
    loop {
        if let Some((watch, _)) = &mut following {
            watch.clear();
        }
        // Checked before the rest of the log is read: when an attempt has ended, its whole output is in the
        // log.
        let is_last = attempt.state == AttemptState::Ended;
        while let Some(line) = reader.next_line().map_err(|e| attempt_log::cannot_open(&e, &task, &path))? {
            output.line(app, &line);
            if let Some(code) = interrupts.as_ref().and_then(Interrupts::caught) {
                return Err(Report::interrupted(code).silent());
            }
        }
        let (Some(interrupts), Some((watch, follower)), false) = (&interrupts, &mut following, is_last)
        else {
            break;
        };
        let left = app.global.timeout.map(|limit| limit.saturating_sub(begun.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            break;
        }
        interrupts.wait(left.map_or(LOG_PAUSE, |left| left.min(LOG_PAUSE)));
        let fds: Vec<_> = [interrupts.fd()].into_iter().chain(watch.fd()).collect();
        let recheck = watch.recheck();
        let woken = follower.wait(&fds, Some(left.map_or(recheck, |left| left.min(recheck))));
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code).silent());
        }
        if woken.changed {
            follower.begin_read()?;
            attempt = read_again(&open, attempt)?;
        }
    }
    output.end(app, &attempt);
    Ok(())
}

/// The current state of the attempt. An attempt that was deleted with its task counts as ended.
fn read_again(open: &Open<'_>, attempt: Attempt) -> CommandResult<Attempt> {
    let found = open.read(|view| view.attempts(&attempt.resource))?.into_iter().find(|a| a.id == attempt.id);
    Ok(found.unwrap_or(Attempt { state: AttemptState::Ended, ..attempt }))
}

struct LogPrinter<'a> {
    task: &'a TaskName,
    raw: bool,
    transcript: Transcript,
}

impl LogPrinter<'_> {
    fn line(&mut self, app: &mut App<'_>, line: &str) {
        if self.raw {
            app.printer.recorded(split_time(line).1);
            return;
        }
        for entry in self.transcript.read(line) {
            self.entry(app, &entry);
        }
    }

    fn entry(&self, app: &mut App<'_>, entry: &Entry) {
        let object = wire::LogEntryJson {
            task: &self.task.key,
            at: entry.at,
            kind: entry.kind.as_str(),
            tool: entry.tool.as_deref(),
            text: &entry.text,
            usage: None,
        };
        app.printer.stream(&json!(object), &entry_text(entry));
    }

    /// How the attempt has ended, and what it has used.
    fn end(&mut self, app: &mut App<'_>, attempt: &Attempt) {
        if self.raw {
            return;
        }
        if let Some(entry) = self.transcript.end() {
            self.entry(app, &entry);
        }
        if attempt.state != AttemptState::Ended {
            return;
        }
        let used = attempt.run.as_ref().and_then(|run| run.usage);
        let reason = attempt.reason.clone().unwrap_or_default();
        let object = wire::LogEntryJson {
            task: &self.task.key,
            at: attempt.ended_at,
            kind: "ended",
            tool: None,
            text: &reason,
            usage: used.map(wire::usage),
        };
        let mut text = stamped(attempt.ended_at);
        text.and(Style::Plain, format!("Ended: {reason}"));
        if let Some(used) = used {
            text.line(format!("{}Used: {}", " ".repeat(INDENT), usage_view::sentence(wire::usage(used))));
        }
        app.printer.stream(&json!(object), &text);
    }
}

/// The width of a time and the gap after it.
const INDENT: usize = "2026-11-16T09:00:00Z  ".len();

fn stamped(at: Option<Timestamp>) -> Text {
    let time = at.map(Timestamp::to_seconds).unwrap_or_default();
    let mut text = Text::new();
    text.styled(Style::Dim, format!("{time:<INDENT$}"));
    text
}

pub(crate) fn entry_text(entry: &Entry) -> Text {
    let style = match entry.kind {
        EntryKind::Message | EntryKind::Result | EntryKind::Line => Style::Plain,
        EntryKind::Tool => Style::Bold,
        EntryKind::FailedOutput | EntryKind::Error => Style::Bad,
        EntryKind::Denied | EntryKind::Limit | EntryKind::Retrying => Style::Warn,
        EntryKind::Started | EntryKind::Output => Style::Dim,
    };
    let mut text = stamped(entry.at);
    for (index, line) in entry.lines().into_iter().enumerate() {
        if index > 0 {
            text.line(" ".repeat(INDENT));
        }
        text.and(style, line);
    }
    text
}
