//! `tenure tasks show`.

use std::fmt::Write as _;

use serde_json::json;
use tenure_core::event::Event;
use tenure_core::hints;
use tenure_core::holder::Judge;
use tenure_core::id::TaskId;
use tenure_core::kernel;
use tenure_core::lease::{LeaseState, Resource};
use tenure_core::store::{EventFilter, MessageFilter};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::wire::{self, TaskJson};
use tenure_core::{Error, Timestamp, reference};

use super::view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::{lease_view, usage_view};
use crate::identity::IdentityArgs;
use crate::local_time::LocalTime;
use crate::report::CommandResult;
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// Show a task: its status, its holder and expiry, or that it can be claimed
///
/// Example: tenure tasks show F001 --history
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    /// Also show its history
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    show(app, &open, &args.identity, &args.task, args.history)
}

pub(crate) fn show(
    app: &App<'_>,
    open: &Open<'_>,
    identity_args: &IdentityArgs,
    reference: &str,
    history: bool,
) -> CommandResult<Answer> {
    let identity = app.identity(identity_args)?;
    let (task, queue, events, messages, attempts, remark, now) = open.read(|view| {
        let viewer = open.viewer(view, &identity)?;
        let name = reference::task(view, reference)?;
        let id = TaskId::new(&name.id);
        let task = view.task(&id, &viewer)?.ok_or(Error::TaskNotFound { reference: name.key })?;
        let queue = kernel::count_before(view, &viewer, &Resource::task(&id), None)?;
        let events = if history {
            let filter = EventFilter { task: Some(id.clone()), limit: 10_000, ..EventFilter::default() };
            view.events(&filter)?
        } else {
            Vec::new()
        };
        let attempts = view.attempts(&Resource::task(&id))?;
        let filter = MessageFilter { task: Some(id), limit: 20, ..MessageFilter::default() };
        let remark = kernel::notes(view, &task, &identity.holder)?.last_remark;
        Ok((task, queue, events, view.messages(&filter)?.0, attempts, remark, view.now()))
    })?;
    let mut text = describe(&task, now, app.env.judge.as_ref());
    if queue > 0 {
        text.line(format!("Waiting in queue: {queue}"));
    }
    let last = attempts.iter().find_map(wire::last_ending);
    let usage = wire::usage_of(&attempts);
    if let Some(used) = &usage {
        text.line(format!("Used: {}", usage_view::sentence(*used)));
    }
    if let Some(last) = &last {
        let why = last.message.map(|why| format!(": {why}")).unwrap_or_default();
        text.line(format!("Last attempt: {}{why}", last.kind));
    }
    if let Some(log) = attempts.iter().find_map(|attempt| attempt.log_path.as_ref()) {
        text.line(format!("Log: {log}"));
    }
    if let Some(remark) = &remark {
        let (kind, by) = (remark.kind.as_str(), ShortIds::of([]).show(&remark.by));
        text.line(format!("Last remark: {} ({kind} by {by}, {})", remark.text, remark.at.to_seconds()));
    }
    if let Some(said) = last.as_ref().and_then(|last| last.final_message) {
        text.blank().styled(Style::Bold, "Final message of the agent");
        text.block(2, said);
    }
    if !messages.is_empty() {
        text.blank().styled(Style::Bold, "Messages");
        for message in &messages {
            text.line(format!("  #{} from {}: {}", message.id, message.from, message.text));
        }
    }
    if history {
        text.blank().styled(Style::Bold, "History");
        let time = app.local_time();
        for event in &events {
            text.line(format!("  {}", history_line(event, &time))).hang(4);
        }
    }
    let data = wire::TaskDetailsAnswer {
        task: TaskJson { last_ending: last, usage, ..view::object(app, &task) },
        queue,
        messages: messages.iter().map(wire::message).collect(),
        events: history.then(|| events.iter().map(wire::event).collect()),
    };
    let answer = Answer::new(json!(data), text);
    Ok(if task.ready {
        answer.hint(hints::claim(&task.key))
    } else if task.status == TaskStatus::Failed {
        answer.hint(hints::retry(&task.key))
    } else {
        answer
    })
}

fn describe(task: &Task, now: Timestamp, judge: &dyn Judge) -> Text {
    let mut text = Text::new();
    text.styled(Style::Bold, task.key.clone()).and(Style::Plain, format!(" - {}", task.title));
    text.blank();
    match view::computed_state(task, now, judge) {
        Some(state) => text
            .line("Status: ")
            .and(view::style(task.status), state)
            .and(Style::Plain, format!(" ({})", task.status)),
        None => text.line("Status: ").and(view::style(task.status), task.status.as_str()),
    };
    match &task.lease {
        Some(lease) => {
            let live = lease.state(now, judge) == LeaseState::Live;
            let (holder_label, expiry_label) =
                if live { ("Claimed by", "Lease expires") } else { ("Last claimed by", "Lease") };
            text.line(format!("{holder_label}: {}", lease_view::holder(lease)));
            text.line(format!("{expiry_label}: {}", lease_view::remaining(lease, now, judge)));
        }
        None if task.ready => {
            text.line("Claimable: yes");
        }
        None => {}
    }
    if !task.blocked_by.is_empty() {
        text.line(format!("Blocked by: {}", task.blocked_by.join(", ")));
    }
    if let Some(section) = &task.section {
        let mode = if section.serial { "" } else { " (parallel)" };
        text.line(format!("Section: {}{mode}", section.name));
    }
    if !task.depends_on.is_empty() {
        text.line(format!("Depends on: {}", task.depends_on.join(", ")));
    }
    if let Some(source) = &task.source_file {
        text.line(format!("Source: {source}"));
    }
    if !task.labels.is_empty() {
        text.line(format!("Labels: {}", task.labels.join(", ")));
    }
    text.line(format!("Priority: {}", task.priority));
    if task.attempts > 0 || task.rejections > 0 {
        text.line(format!("Attempts: {}   Rejections: {}", task.attempts, task.rejections));
    }
    text.styled(Style::Dim, format!("Id: {}", task.id));
    if !task.description.is_empty() {
        text.blank();
        text.block(0, &task.description);
    }
    text
}

pub(super) fn history_line(event: &Event, time: &LocalTime) -> String {
    let mut line = format!("{}  {:<16} {}", time.seconds(event.at), event.kind.as_str(), event.actor);
    if let (Some(from), Some(to)) = (event.from, event.to) {
        let _ = write!(line, "  {from} → {to}");
    }
    if let Some(fence) = event.fence {
        let _ = write!(line, "  fence {fence}");
    }
    if let Some(what) = tenure_core::event_text::what(event) {
        let _ = write!(line, "  {what}");
    }
    for key in ["message", "reason"] {
        if let Some(text) = event.detail.get(key).and_then(|v| v.as_str()) {
            let _ = write!(line, "  ({text})");
        }
    }
    line
}
