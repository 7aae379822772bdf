//! The message line, the keys, and the help.

use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::look::{Look, Tone, cell, short};
use super::put;
use crate::commands::board::state::{Mode, Scene, State};
use crate::commands::board::verbs::{Asks, Verb};

/// What is being typed or asked, or what the last verb did.
pub(super) fn message(frame: &mut Frame<'_>, area: Rect, state: &State, look: &Look) {
    let width = usize::from(area.width);
    let line = match &state.mode {
        Mode::Filter => typed("/", state.query.search.as_deref().unwrap_or_default(), width, look),
        Mode::Text { verb, target, text } => {
            let task = target.task.as_ref();
            let key = task.filter(|_| !matches!(verb, Verb::Add | Verb::Start));
            let key = key.map(|task| format!(" {}", task.key));
            let (Asks::Text(question) | Asks::OptionalText(question)) = verb.asks() else { return };
            typed(&format!("{question}{}: ", key.unwrap_or_default()), text, width, look)
        }
        Mode::Confirm { verb, target } => {
            let Asks::Yes(question) = verb.asks() else { return };
            let task = target.task.as_ref();
            let runner = target.runner.as_ref().map(|id| id.chars().take(8).collect::<String>());
            let what = task.map(|task| task.key.clone()).or(runner).unwrap_or_default();
            let lease = task.and_then(|task| task.lease.as_ref()).filter(|_| *verb == Verb::Evict);
            let holder = lease.map(|lease| format!(" ({})", lease.holder)).unwrap_or_default();
            let text = format!(" {question} {what}{holder}?  y: yes, any other key: no");
            Line::from(look.span(Tone::Warn, short(&text, width)))
        }
        Mode::Browse | Mode::Help => match &state.notice {
            Some(notice) => {
                let tone = if notice.is_good { Tone::Good } else { Tone::Bad };
                Line::from(look.span(tone, format!(" {}", short(&notice.text, width.saturating_sub(1)))))
            }
            None => {
                let hint = " ↑↓ select  Tab 1-4 pane  PgUp PgDn scroll  ←→ fold  f finished  b by status";
                Line::from(look.span(Tone::Dim, short(hint, width)))
            }
        },
    };
    put(frame, area, &[line]);
}

/// A prompt, and the end of what was typed.
fn typed(prompt: &str, text: &str, width: usize, look: &Look) -> Line<'static> {
    let prompt = short(prompt, width / 2);
    let room = width.saturating_sub(prompt.width() + 2);
    let mut shown = tenure_core::text::escape_line(text).into_owned();
    while shown.width() > room {
        shown.remove(0);
    }
    let mut cursor = Span::raw(" ");
    cursor.style = cursor.style.add_modifier(Modifier::REVERSED);
    Line::from(vec![look.span(Tone::Bold, prompt), Span::raw(shown), cursor])
}

/// The verbs, always in the same places. Those that the selection does not allow are dim.
pub(super) fn keys(frame: &mut Frame<'_>, area: Rect, scene: &Scene, state: &State, look: &Look) {
    let row = state.row(&scene.board);
    // On a narrow terminal, a key that is the first letter of its label is not printed separately.
    let is_wide = usize::from(area.width) >= 112;
    let mut lines = vec![Line::default()];
    let mut add = |key: char, label: &str, applies: bool| {
        let tone = if applies { Tone::Bold } else { Tone::Dim };
        let mut letter = look.span(tone, key.to_string());
        if applies {
            letter.style = letter.style.add_modifier(Modifier::UNDERLINED);
        }
        let rest = label.strip_prefix(key).filter(|_| !is_wide);
        let gap = if key.is_alphabetic() || is_wide { " " } else { "" };
        let word = rest.map_or_else(|| format!("{gap}{label}"), str::to_owned);
        let word = look.span(if applies { Tone::Plain } else { Tone::Dim }, word);
        let gap = Span::raw(if is_wide { "  " } else { " " });
        let is_full = |line: &Line<'_>| line.width() + 1 + word.width() > usize::from(area.width);
        if lines.last().is_none_or(is_full) {
            lines.push(Line::default());
        }
        if let Some(line) = lines.last_mut() {
            line.spans.extend([letter, word, gap]);
        }
    };
    for verb in Verb::ALL {
        add(verb.key(), verb.label(), verb.applies(row, &state.me));
    }
    add('/', "find", true);
    add('?', "help", true);
    add('q', "quit", true);
    put(frame, area, &lines);
}

pub(super) fn help(frame: &mut Frame<'_>, screen: Rect, look: &Look) {
    let mut rows: Vec<(String, &str)> =
        Verb::ALL.into_iter().filter_map(|verb| Some((verb.key().to_string(), verb.meaning()?))).collect();
    for (key, meaning) in [
        ("1 2 3 4 Tab", "choose a list"),
        ("↑ ↓ j k g G", "select a row"),
        ("← → Enter", "close or open a group"),
        ("i o h p", "info, output, history, project"),
        ("PgUp PgDn", "scroll the right side (also K, J)"),
        ("/  Esc", "filter the tasks; end the filter"),
        ("f  b", "finished tasks; group by status"),
        ("M", "leave the mouse to the terminal"),
        ("Ctrl+Z  q", "suspend; quit"),
    ] {
        rows.push((key.to_owned(), meaning));
    }
    let width = 52.min(screen.width);
    let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(screen.height);
    let area = Rect::new((screen.width - width) / 2, (screen.height - height) / 2, width, height)
        .intersection(screen);
    for position in area.positions() {
        frame.buffer_mut()[position].reset();
    }
    // Half of a wide character before the frame would cover it.
    for y in area.y..area.bottom() {
        if let Some(before) = area.x.checked_sub(1).and_then(|x| frame.buffer_mut().cell_mut((x, y)))
            && before.symbol().width() > 1
        {
            before.set_symbol(" ");
        }
    }
    let inner = usize::from(width).saturating_sub(4);
    let edge = |left: &str, right: &str| {
        Line::from(look.span(Tone::Bold, format!("{left}{}{right}", "─".repeat(inner + 2))))
    };
    let mut lines = vec![edge("┌", "┐")];
    for (key, meaning) in rows {
        let text = format!("{}{meaning}", cell(&key, 13));
        lines.push(Line::from(vec![
            look.span(Tone::Bold, "│ "),
            Span::raw(cell(&text, inner)),
            look.span(Tone::Bold, " │"),
        ]));
    }
    lines.truncate(usize::from(height).saturating_sub(1));
    lines.push(edge("└", "┘"));
    put(frame, area, &lines);
}
