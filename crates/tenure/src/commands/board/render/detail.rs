//! The details of the selected row: a task with its tabs, or another kind of row.

use ratatui_core::style::Modifier;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use tenure_core::board::{EventLine, Held, TaskDetail};
use tenure_core::hints::Hint;
use tenure_core::lease::{Attempt, AttemptState, LeaseState};
use tenure_core::short_id::ShortIds;
use tenure_core::{Timestamp, wire};
use tenure_runner::transcript::EntryKind;

use super::lists::holder;
use super::look::{Look, Tone, age, short, span_of};
use super::{below_title, indented, is_from_end, project, put};
use crate::commands::board::layout::Areas;
use crate::commands::board::state::{Row, Scene, State, Tab};
use crate::commands::usage_view;

/// Returns how far it can be scrolled.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    areas: &Areas,
    scene: &Scene,
    state: &State,
    look: &Look,
    now: Timestamp,
) -> usize {
    let area = areas.detail;
    let width = usize::from(area.width).saturating_sub(1);
    let chosen = areas.shown_tab(state.tab);
    for (tab, place) in areas.tabs() {
        let is_chosen = tab == chosen;
        let mut span = look
            .span(if is_chosen { Tone::Bold } else { Tone::Dim }, format!(" {}:{} ", tab.key(), tab.label()));
        if is_chosen {
            span.style = span.style.add_modifier(Modifier::REVERSED);
        }
        frame.buffer_mut().set_line(place.x, place.y, &Line::from(span), place.width);
    }
    let inner = below_title(area);
    let lines = match chosen {
        Tab::Info => info(scene, state, look, now, width),
        Tab::Output => output(scene, look, width),
        Tab::History => history(scene, look, now, width),
        Tab::Project => project::lines(scene, look, now, width),
    };
    let height = usize::from(inner.height);
    let furthest = lines.len().saturating_sub(height);
    let scroll = state.scroll.min(furthest);
    let top = if is_from_end(chosen) { furthest - scroll } else { scroll };
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).take(height).map(indented).collect();
    put(frame, inner, &shown);
    furthest
}

fn info(scene: &Scene, state: &State, look: &Look, now: Timestamp, width: usize) -> Vec<Line<'static>> {
    let row = state.row(&scene.board);
    if let (Some(detail), Some(task)) = (&scene.detail, row.and_then(Row::task))
        && detail.task.id == task.id
    {
        let mut lines = task_info(detail, look, now, width);
        if let Some(Row::Attention(attention)) = row {
            let is_new = |hint: &&Hint| {
                detail.reasons.iter().all(|r| r.hint.as_ref().is_none_or(|h| h.command != hint.command))
            };
            let more: Vec<Hint> = attention.hints.iter().filter(is_new).cloned().collect();
            lines.extend(hints(&more, look, width));
        }
        if let Some(Row::Held(Held { last_event: Some(event), .. })) = row {
            let at = lines.iter().position(|line| line.spans.is_empty()).unwrap_or(lines.len());
            let last = event_lines(event, None, look, now, width.saturating_sub(10));
            let last = last.into_iter().map(|line| {
                let mut spans = vec![look.span(Tone::Dim, format!("{:<10}", "last"))];
                spans.extend(line.spans);
                Line::from(spans)
            });
            lines.splice(at..at, last.take(1));
        }
        return lines;
    }
    match row {
        Some(Row::Attention(attention)) => {
            let mut lines = look.wrapped(Tone::Bold, &attention.sentence, 0, width);
            lines.push(Line::default());
            lines.extend(hints(&attention.hints, look, width));
            lines
        }
        Some(Row::Waiting(waiting)) => {
            let on = format!("process {} on {}", waiting.pid, waiting.host);
            let review = if waiting.review { ", also for review" } else { "" };
            let mut lines = look.wrapped(Tone::Bold, &holder(&waiting.holder), 0, width);
            lines.extend(field("wants", &format!("{}{review}", waiting.wish), look, width));
            lines.extend(field("since", &look.times.seconds(waiting.since), look, width));
            lines.extend(field("process", &on, look, width));
            lines.extend(field("ticket", &waiting.ticket.to_string(), look, width));
            lines
        }
        Some(Row::Runner(line)) => {
            let runner = &line.runner;
            let process = format!("{} on {}", runner.process.process.pid, runner.process.hostname);
            let mut lines = look.wrapped(Tone::Bold, &format!("runner {}", runner.id), 0, width);
            lines.extend(field("status", runner.status.as_str(), look, width));
            lines.extend(field("preset", &runner.preset, look, width));
            if let Some(task) = &line.task {
                lines.extend(field("task", task, look, width));
            }
            if let Some(section) = &line.section {
                lines.extend(field("section", section, look, width));
            }
            lines.extend(field("process", &process, look, width));
            lines.extend(field("started", &look.times.seconds(runner.started_at), look, width));
            let beat = format!("{} ago", age(now, runner.heartbeat_at));
            lines.extend(field("heartbeat", &beat, look, width));
            lines
        }
        Some(Row::Group(group) | Row::More(_, group)) => {
            let mut lines = look.wrapped(Tone::Bold, &group.name, 0, width);
            let mode = if group.serial { "serial: one holder at a time" } else { "parallel" };
            lines.extend(field("mode", mode, look, width));
            lines.extend(field("tasks", &format!("{} open of {}", group.open, group.total), look, width));
            if let Some(of) = &group.holder {
                lines.extend(field("holder", &holder(of), look, width));
            }
            if !group.blocked_by.is_empty() {
                lines.extend(field("after", &group.blocked_by.join(", "), look, width));
            }
            lines
        }
        _ => {
            let mut lines = Vec::new();
            for reason in &scene.board.reasons {
                lines.extend(look.wrapped(Tone::Plain, &reason.sentence, 0, width));
                lines.extend(hints(reason.hint.as_slice(), look, width));
            }
            lines
        }
    }
}

fn field(name: &str, value: &str, look: &Look, width: usize) -> Vec<Line<'static>> {
    let mut lines = look.wrapped(Tone::Plain, value, 10, width);
    if let Some(first) = lines.first_mut() {
        let text = first.spans.iter().map(|span| span.content.trim_start()).collect::<String>();
        *first = Line::from(vec![look.span(Tone::Dim, format!("{name:<10}")), Span::raw(text)]);
    }
    lines
}

fn hints(hints: &[Hint], look: &Look, width: usize) -> Vec<Line<'static>> {
    let lines = hints.iter().flat_map(|hint| {
        let mut lines = look.wrapped(Tone::Dim, &format!("{}:", hint.why), 2, width);
        lines.extend(look.wrapped(Tone::Accent, &hint.command, 4, width));
        lines
    });
    lines.collect()
}

fn task_info(detail: &TaskDetail, look: &Look, now: Timestamp, width: usize) -> Vec<Line<'static>> {
    let task = &detail.task;
    let mut lines = look.wrapped(Tone::Bold, &format!("{}  {}", task.key, task.title), 0, width);
    let (_, tone) = super::look::mark(task.status, !task.blocked_by.is_empty());
    let status = format!("{}, changed {} ago", task.status.label(), age(now, task.updated_at));
    lines.push(Line::from(vec![look.span(Tone::Dim, format!("{:<10}", "status")), look.span(tone, status)]));
    let mut add = |name: &str, value: &str| lines.extend(field(name, value, look, width));
    if let Some(section) = &task.section {
        add("section", &section.name);
    }
    if let Some(lease) = &detail.line.lease {
        let process = lease.process.as_ref().map(|(pid, host)| format!(", process {pid} on {host}"));
        add("holder", &format!("{}{}", lease.holder, process.unwrap_or_default()));
        let left = match lease.state {
            LeaseState::Live => format!("{} left", span_of(lease.expires_at.since(now))),
            LeaseState::Expired => format!("expired {} ago", age(now, lease.expires_at)),
            LeaseState::HolderDead => "its process is dead".to_owned(),
            LeaseState::Ended(reason) => reason.as_str().to_owned(),
        };
        let since = age(now, lease.acquired_at);
        add("lease", &format!("fence {}, held for {since}, {left}", lease.fence));
    }
    if !task.depends_on.is_empty() {
        add("after", &task.depends_on.join(", "));
    }
    if !task.labels.is_empty() {
        add("labels", &task.labels.join(", "));
    }
    if let Some(used) = detail.used {
        add("used", &usage_view::sentence(wire::usage(used)));
    }
    for attempt in detail.attempts.iter().take(3) {
        add("attempt", &attempt_words(attempt, now));
    }
    if let Some((by, remark)) = detail.remark() {
        add("remark", &format!("{remark} ({})", ShortIds::of([]).show(by)));
    }
    lines.push(Line::default());
    for reason in &detail.reasons {
        lines.extend(look.wrapped(Tone::Warn, &reason.sentence, 0, width));
        lines.extend(hints(reason.hint.as_slice(), look, width));
    }
    if !task.description.trim().is_empty() {
        lines.push(Line::default());
        lines.extend(look.wrapped(Tone::Plain, &task.description, 0, width));
    }
    let said = detail.attempts.iter().find_map(|attempt| attempt.run.as_ref()?.final_message.as_ref());
    if let Some(said) = said {
        lines.push(Line::default());
        lines.push(Line::from(look.span(Tone::Dim, "The agent's final message")));
        lines.extend(look.wrapped(Tone::Plain, said, 2, width));
    }
    if !detail.messages.is_empty() {
        lines.push(Line::default());
        lines.push(Line::from(look.span(Tone::Dim, "Messages")));
    }
    for message in detail.messages.iter().rev() {
        let to = message.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let seen = if message.acknowledged_at.is_some() { ", acknowledged" } else { "" };
        let head = format!("{}{to}, {} ago{seen}", message.from, age(now, message.sent_at));
        lines.extend(look.wrapped(Tone::Dim, &head, 0, width));
        lines.extend(look.wrapped(Tone::Plain, &message.text, 2, width));
    }
    lines
}

fn attempt_words(attempt: &Attempt, now: Timestamp) -> String {
    let agent = attempt.agent.as_deref().unwrap_or("command");
    match attempt.state {
        AttemptState::Running => format!("{agent}, running for {}", age(now, attempt.started_at)),
        AttemptState::Ending => format!("{agent}, being ended"),
        AttemptState::Ended => {
            let ago = age(now, attempt.ended_at.unwrap_or(attempt.started_at));
            let why = attempt.reason.as_deref().unwrap_or("ended");
            format!("{agent}, {ago} ago: {why}")
        }
    }
}

fn output(scene: &Scene, look: &Look, width: usize) -> Vec<Line<'static>> {
    if let Some(note) = &scene.output.note {
        return look.wrapped(Tone::Dim, note, 0, width);
    }
    if scene.output.lines.is_empty() {
        return vec![Line::from(look.span(Tone::Dim, "nothing was printed yet"))];
    }
    let lines = scene.output.lines.iter().flat_map(|(kind, line)| {
        let tone = match kind {
            EntryKind::Message | EntryKind::Result | EntryKind::Line => Tone::Plain,
            EntryKind::Tool => Tone::Bold,
            EntryKind::FailedOutput | EntryKind::Error => Tone::Bad,
            EntryKind::Denied | EntryKind::Limit | EntryKind::Retrying => Tone::Warn,
            EntryKind::Started | EntryKind::Output => Tone::Dim,
        };
        look.wrapped(tone, line, 0, width)
    });
    lines.collect()
}

fn history(scene: &Scene, look: &Look, now: Timestamp, width: usize) -> Vec<Line<'static>> {
    let Some(detail) = &scene.detail else {
        return vec![Line::from(look.span(Tone::Dim, "no task is selected"))];
    };
    detail.history.iter().flat_map(|event| event_lines(event, None, look, now, width)).collect()
}

/// An event in a line, and its remark in further ones. `subject` is shown if it is not clear.
pub(super) fn event_lines(
    event: &EventLine,
    subject: Option<&str>,
    look: &Look,
    now: Timestamp,
    width: usize,
) -> Vec<Line<'static>> {
    let ago = age(now, event.at);
    let mut what = event.kind.as_str().to_owned();
    if let (Some(from), Some(to)) = (event.from, event.to) {
        what = format!("{} → {}", from.label(), to.label());
    }
    if let Some(subject) = subject.filter(|subject| !subject.is_empty()) {
        what = format!("{subject} {what}");
    }
    if let Some(more) = &event.what {
        what = format!("{what} {more}");
    }
    let room = width.saturating_sub(6);
    let what = short(&what, room);
    let used = unicode_width::UnicodeWidthStr::width(what.as_str());
    let by = short(&format!(" {}", ShortIds::of([]).show(&event.actor)), room.saturating_sub(used));
    let mut lines = vec![Line::from(vec![
        look.span(Tone::Dim, format!("{ago:>4}  ")),
        Span::raw(what),
        look.span(Tone::Dim, by),
    ])];
    if let Some(remark) = &event.remark {
        lines.extend(look.wrapped(Tone::Plain, remark, 6, width));
    }
    lines
}
