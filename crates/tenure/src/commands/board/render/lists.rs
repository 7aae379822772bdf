//! The four lists on the left.

use std::fmt::Write as _;

use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use tenure_core::board::{Attention, AttentionKind, Group, Held, TaskLine, Waiting};
use tenure_core::holder::{Holder, HolderKind};
use tenure_core::lease::LeaseState;
use tenure_core::{Timestamp, wire};

use super::look::{Look, Tone, age, cell, count, mark, short, span_of};
use super::{below_title, put};
use crate::commands::board::state::{Pane, Row, Scene, State, rows};
use crate::commands::usage_view::dollars;
use tenure_core::short_id::ShortIds;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    pane: Pane,
    scene: &Scene,
    state: &State,
    look: &Look,
    now: Timestamp,
) {
    let is_focused = state.focus == pane;
    put(frame, area, &[title(area.width.into(), pane, scene, state, look)]);
    let inner = below_title(area);
    let (height, width) = (usize::from(inner.height), usize::from(inner.width));
    let rows = rows(&scene.board, pane);
    let top = state.top(pane, height, rows.len());
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (index, row) in rows.iter().enumerate().skip(top).take(height) {
        let mut line = row_line(*row, look, now, width);
        if index == state.selected(pane) && is_focused {
            // The padding makes the whole row visible as selected.
            let used: usize = line.width();
            line.push_span(Span::raw(" ".repeat(width.saturating_sub(used))));
            // Colours and dim text would make a patchwork of it.
            for span in &mut line.spans {
                span.style = Style::new();
            }
            line.style = line.style.add_modifier(Modifier::REVERSED);
        }
        lines.push(line);
    }
    if rows.is_empty() {
        lines.push(Line::from(look.span(Tone::Dim, format!("  {}", empty(pane, state)))));
    }
    put(frame, inner, &lines);
}

fn empty(pane: Pane, state: &State) -> &'static str {
    match pane {
        Pane::Attention => "nothing",
        Pane::Held => "no task is held",
        Pane::Queue => "no one waits, and no runner is running",
        Pane::Tasks if state.query.search.is_some() => "no task matches",
        Pane::Tasks => "no tasks yet: n adds one",
    }
}

/// The pane with the focus has a heavy rule, so that the focus is visible without colour.
fn title(width: usize, pane: Pane, scene: &Scene, state: &State, look: &Look) -> Line<'static> {
    let board = &scene.board;
    let number = pane.index() + 1;
    let (name, total) = match pane {
        Pane::Attention => ("Waits for you", board.attention.total),
        Pane::Held => ("Held", board.held.total),
        Pane::Tasks => ("Tasks", board.project.total),
        Pane::Queue => ("Queue", board.queue.total),
    };
    let is_focused = state.focus == pane;
    let (line, tone) = if is_focused { ("━", Tone::Bold) } else { ("─", Tone::Dim) };
    let mut text = format!("{number} {name} ");
    if total > 0 {
        let _ = write!(text, "({}) ", count(total));
    }
    if pane == Pane::Queue && !board.runners.is_empty() {
        let _ = write!(text, "Runners ({}) ", board.runners.len());
    }
    if pane == Pane::Tasks {
        if let Some(search) = &state.query.search {
            let _ = write!(text, "/{} ", short(search, 16));
        }
        if state.query.finished {
            text.push_str("with finished ");
        }
    }
    let alarm = pane == Pane::Attention && total > 0;
    let text = short(&text, width.saturating_sub(2));
    let used = 2 + unicode_width::UnicodeWidthStr::width(text.as_str());
    let name_tone = if alarm { Tone::Warn } else { Tone::Plain };
    let mut name = look.span(name_tone, text);
    if is_focused {
        name.style = name.style.add_modifier(Modifier::BOLD);
    }
    Line::from(vec![
        look.span(tone, format!("{line} ")),
        name,
        look.span(tone, line.repeat(width.saturating_sub(used))),
    ])
}

fn row_line(row: Row<'_>, look: &Look, now: Timestamp, width: usize) -> Line<'static> {
    match row {
        Row::Attention(attention) => attention_line(attention, look, now, width),
        Row::Held(held) => held_line(held, look, now, width),
        Row::Waiting(waiting) => waiting_line(waiting, look, now, width),
        Row::Runner(line) => Line::from(format!(" {}", cell(&line.sentence(), width.saturating_sub(1)))),
        Row::Group(group) => group_line(group, look, width),
        Row::Task(task, _) => task_line(task, look, now, width),
        Row::More(more, group) => {
            let is_uncounted = group.tasks.as_ref().is_some_and(|tasks| tasks.is_uncounted);
            let many = if is_uncounted { String::new() } else { format!("{} ", count(more)) };
            Line::from(look.span(Tone::Dim, format!("     … {many}more: Enter shows them")))
        }
    }
}

fn attention_line(attention: &Attention, look: &Look, now: Timestamp, width: usize) -> Line<'static> {
    let tone = match attention.kind {
        AttentionKind::Failed | AttentionKind::NotLoggedIn | AttentionKind::Untrusted => Tone::Bad,
        _ => Tone::Warn,
    };
    let kind = cell(attention.kind.label(), 10.min(width));
    let since = attention.since.map(|since| age(now, since)).unwrap_or_default();
    let room = width.saturating_sub(12 + since.len() + 1);
    let what = match &attention.task {
        Some(task) => format!("{} {}", task.key, task.title),
        None => attention.sentence.clone(),
    };
    Line::from(vec![
        look.span(tone, format!(" {kind} ")),
        Span::raw(cell(&what, room)),
        look.span(Tone::Dim, format!(" {since}")),
    ])
}

/// `bob`, or the beginning of a runner's id.
pub(super) fn holder(holder: &Holder) -> String {
    match holder.kind {
        HolderKind::Runner => format!("runner {}", ShortIds::of([]).show(&holder.id)),
        HolderKind::Agent | HolderKind::Person => holder.id.clone(),
    }
}

fn held_line(held: &Held, look: &Look, now: Timestamp, width: usize) -> Line<'static> {
    let lease = &held.lease;
    let (left, tone) = match lease.state {
        LeaseState::Live => (format!("{} left", span_of(lease.expires_at.since(now))), Tone::Dim),
        LeaseState::Expired => ("expired".to_owned(), Tone::Warn),
        LeaseState::HolderDead => ("died".to_owned(), Tone::Bad),
        LeaseState::Ended(_) => ("ended".to_owned(), Tone::Dim),
    };
    let agent = held.attempt.as_ref().and_then(|attempt| attempt.agent.clone());
    let name = match agent {
        Some(agent) => format!("{agent} ({})", holder(&lease.holder)),
        None => holder(&lease.holder),
    };
    let since = age(now, lease.acquired_at);
    let used = held.used.filter(|_| width > 60);
    let tokens = used.map(|used| format!(" {} tokens", count(used.tokens())));
    let dollars = used.and_then(|used| wire::usage(used).usd).map(|usd| format!(" {}", dollars(usd)));
    let cost = tokens.into_iter().chain(dollars).collect::<String>();
    let tail = format!("{cost} {since:>4} {left:>10}");
    let key = cell(&held.task.key, 6.max(held.task.key.len().min(10)));
    let room = width.saturating_sub(1 + key.len() + 1 + tail.len());
    // A wide pane has room for the title.
    let who = if room > 34 { 24 } else { room };
    let title =
        if room > who { format!(" {}", cell(&held.task.title, room - who - 1)) } else { String::new() };
    Line::from(vec![
        look.span(Tone::Accent, format!(" {key} ")),
        Span::raw(cell(&name, who)),
        Span::raw(title),
        look.span(Tone::Dim, format!("{cost} {since:>4}")),
        look.span(tone, format!(" {left:>10}")),
    ])
}

fn waiting_line(waiting: &Waiting, look: &Look, now: Timestamp, width: usize) -> Line<'static> {
    let since = age(now, waiting.since);
    let who = holder(&waiting.holder);
    let wish = format!("for {}", waiting.wish);
    let room = width.saturating_sub(3 + since.len());
    let first = room / 2;
    Line::from(vec![
        Span::raw(format!(" {} ", cell(&who, first.saturating_sub(1)))),
        Span::raw(cell(&wish, room - first)),
        look.span(Tone::Dim, format!(" {since}")),
    ])
}

fn group_line(group: &Group, look: &Look, width: usize) -> Line<'static> {
    let sign = if group.tasks.is_some() { '▾' } else { '▸' };
    let mut more = format!(" {} open", count(group.open));
    if group.total > group.open {
        let _ = write!(more, " of {}", count(group.total));
    }
    if let Some(of) = &group.holder {
        let _ = write!(more, ", {} works in it", holder(of));
    } else if group.serial {
        more.push_str(", serial");
    }
    if !group.blocked_by.is_empty() {
        more += ", after ";
        more += &group.blocked_by.join(", ");
    }
    let name = short(&group.name, width.saturating_sub(4));
    let used = 3 + unicode_width::UnicodeWidthStr::width(name.as_str());
    Line::from(vec![
        look.span(Tone::Bold, format!(" {sign} {name}")),
        look.span(Tone::Dim, short(&more, width.saturating_sub(used))),
    ])
}

fn task_line(task: &TaskLine, look: &Look, now: Timestamp, width: usize) -> Line<'static> {
    let (mark, tone) = mark(task.status, !task.blocked_by.is_empty());
    let tail = match &task.lease {
        Some(lease) if lease.state == LeaseState::Live => {
            format!(" {} {}", short(&holder(&lease.holder), 14), age(now, lease.acquired_at))
        }
        Some(_) => " lapsed".to_owned(),
        None if !task.blocked_by.is_empty() => format!(" after {}", short(&task.blocked_by.join(" "), 14)),
        None => String::new(),
    };
    let tail_width = unicode_width::UnicodeWidthStr::width(tail.as_str());
    let key = cell(&task.key, 5.max(task.key.len().min(12)));
    let room = width.saturating_sub(7 + key.len());
    // If there is little room, the title is more important than the rest.
    let tail = if room < tail_width + 12 { String::new() } else { tail };
    let room = room.saturating_sub(unicode_width::UnicodeWidthStr::width(tail.as_str()));
    let is_over = task.status.is_finished();
    Line::from(vec![
        look.span(tone, format!("   {mark} ")),
        look.span(if is_over { Tone::Dim } else { Tone::Plain }, format!("{key} ")),
        look.span(if is_over { Tone::Dim } else { Tone::Plain }, cell(&task.title, room)),
        look.span(Tone::Dim, tail),
    ])
}
