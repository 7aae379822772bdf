//! Draws the board. Pure: the same scene, state and time give the same screen.
//!
//! Guarantees: stored text cannot move the cursor or colour the screen, because every cell is escaped; no background colour of
//! the terminal is assumed, and no information depends on colour.

mod detail;
mod foot;
mod lists;
mod look;
mod project;

pub(super) use look::Look;

use ratatui_core::layout::Rect;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use tenure_core::task::TaskStatus;
use tenure_core::{Timestamp, wire};

use self::look::{Tone, cell, count};
use super::layout::{Areas, SMALLEST};
use super::state::{Mode, Pane, Scene, State, Tab};
use crate::commands::usage_view::dollars;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    scene: &Scene,
    state: &State,
    look: &Look,
    now: Timestamp,
) -> usize {
    let screen = frame.area();
    let areas = &Areas::of(screen);
    if screen.width < SMALLEST.0 || screen.height < SMALLEST.1 {
        let text = format!("the board needs {} columns and {} lines", SMALLEST.0, SMALLEST.1);
        put(frame, screen, &[Line::from(cell(&text, screen.width.into()))]);
        return 0;
    }
    head(frame, areas.head, scene, look);
    for pane in Pane::ALL {
        lists::draw(frame, areas.panes[pane.index()], pane, scene, state, look, now);
    }
    gap(frame, areas.detail, look);
    let furthest = detail::draw(frame, areas, scene, state, look, now);
    if let Some(area) = areas.project {
        gap(frame, area, look);
        let lines = project::lines(scene, look, now, usize::from(area.width).saturating_sub(1));
        titled(frame, area, " project", lines, look);
    }
    foot::message(frame, areas.message, state, look);
    foot::keys(frame, areas.keys, scene, state, look);
    if state.mode == Mode::Help {
        foot::help(frame, screen, look);
    }
    furthest
}

/// The name and the numbers of the project, and why nothing moves.
fn head(frame: &mut Frame<'_>, area: Rect, scene: &Scene, look: &Look) {
    let project = &scene.board.project;
    let width = usize::from(area.width);
    let name = project.name.as_deref().unwrap_or(&project.path);
    let mut spans = vec![look.span(Tone::Bold, format!(" {} ", cell(name, width / 3).trim_end()))];
    for (status, word, tone) in [
        (TaskStatus::Pending, "pending", Tone::Plain),
        (TaskStatus::InProgress, "working", Tone::Accent),
        (TaskStatus::Review, "review", Tone::Warn),
        (TaskStatus::Failed, "failed", Tone::Bad),
        (TaskStatus::Completed, "done", Tone::Good),
    ] {
        let number = project.count(status);
        let tone = if number == 0 { Tone::Dim } else { tone };
        spans.push(look.span(tone, format!(" {} {word}", count(number))));
    }
    if let Some(usd) = project.used_today.and_then(|used| wire::usage(used).usd) {
        spans.push(look.span(Tone::Plain, format!("  {} in 24h", dollars(usd))));
    }
    let mut why = Line::default();
    if let Some(reason) = scene.board.reasons.first() {
        let tone = if scene.is_moving() { Tone::Dim } else { Tone::Warn };
        why.push_span(look.span(tone, format!(" {}", cell(&reason.sentence, width.saturating_sub(1)))));
    }
    put(frame, area, &[Line::from(spans), why]);
}

/// Draws lines from the top of an area. What does not fit is left out.
fn put(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'_>]) {
    let area = area.intersection(frame.area());
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

/// The column before an area.
fn gap(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    let area = area.intersection(frame.area());
    for y in area.y..area.bottom() {
        frame.buffer_mut().set_span(area.x - 1, y, &look.span(Tone::Dim, "│"), 1);
    }
}

/// A title with a rule, and lines below it.
fn titled(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'static>>, look: &Look) {
    let rule = "─".repeat(usize::from(area.width).saturating_sub(title.chars().count() + 1));
    let title = Line::from(vec![look.span(Tone::Bold, format!("{title} ")), look.span(Tone::Dim, rule)]);
    put(frame, area, &[title]);
    let lines: Vec<Line<'_>> = lines.into_iter().map(indented).collect();
    put(frame, below_title(area), &lines);
}

/// A line with a gap between it and the rule on its left.
fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw(" "));
    line
}

fn below_title(area: Rect) -> Rect {
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// The lines of the tab, and whether they are shown from their end.
fn is_from_end(tab: Tab) -> bool {
    tab == Tab::Output
}
