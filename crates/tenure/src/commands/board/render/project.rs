//! The project as a whole: why nothing moves, runners, what is parked, jobs, and the last events.

use ratatui_core::text::{Line, Span};
use tenure_core::Timestamp;
use tenure_core::job::JobStatus;

use super::detail::event_lines;
use super::look::{Look, Tone, count};
use crate::commands::board::state::Scene;

pub(super) fn lines(scene: &Scene, look: &Look, now: Timestamp, width: usize) -> Vec<Line<'static>> {
    let board = &scene.board;
    let mut lines = Vec::new();
    let heading = |lines: &mut Vec<Line<'static>>, text: &str| {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(look.span(Tone::Bold, text.to_owned())));
    };
    heading(&mut lines, if scene.is_moving() { "Progress" } else { "Why nothing moves" });
    if let Some(lock) = &board.project.exclusive {
        lines.extend(look.wrapped(Tone::Bad, lock, 0, width));
    }
    // Held tasks have their own list.
    for reason in board.reasons.iter().filter(|reason| !matches!(reason.kind, "held" | "lapsed")).take(6) {
        lines.extend(look.wrapped(Tone::Plain, &reason.sentence, 0, width));
        if let Some(hint) = &reason.hint {
            lines.extend(look.wrapped(Tone::Accent, &hint.command, 2, width));
        }
    }
    heading(&mut lines, "Runners");
    if board.runners.is_empty() {
        lines.push(Line::from(look.span(Tone::Dim, "none is running")));
    }
    for runner in &board.runners {
        lines.extend(look.wrapped(Tone::Plain, &runner.sentence(), 0, width));
    }
    if !board.parked.is_empty() {
        heading(&mut lines, "Parked");
    }
    for parked in &board.parked {
        lines.extend(look.wrapped(Tone::Warn, &parked.sentence, 0, width));
    }
    if !board.jobs.rows.is_empty() {
        heading(&mut lines, "Jobs");
    }
    for job in board.jobs.rows.iter().take(5) {
        let tone = match job.status {
            JobStatus::Running => Tone::Accent,
            JobStatus::Completed => Tone::Good,
            JobStatus::Interrupted => Tone::Warn,
            JobStatus::Failed => Tone::Bad,
            JobStatus::Cancelled => Tone::Dim,
        };
        let counts = &job.counts;
        let over = counts.succeeded + counts.failed + counts.skipped;
        lines.push(Line::from(vec![
            look.span(tone, format!("{:<12}", job.status.as_str())),
            Span::raw(format!(
                "{} of {}  {}",
                count(over),
                count(counts.total),
                super::look::short(&job.name, width.saturating_sub(26))
            )),
        ]));
    }
    if !scene.events.is_empty() {
        heading(&mut lines, "Events");
    }
    for event in &scene.events {
        lines.extend(event_lines(event, Some(&event.subject), look, now, width));
    }
    lines
}
