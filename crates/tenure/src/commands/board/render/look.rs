//! Colours, and text that fits a cell.

use std::time::Duration;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use tenure_core::Timestamp;
use tenure_core::task::TaskStatus;
use tenure_core::text::escape_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::local_time::LocalTime;
use crate::table::cut_to;

/// The colours and the time zone of this user.
#[derive(Debug, Clone)]
pub(in crate::commands::board) struct Look {
    pub(in crate::commands::board) color: bool,
    pub(in crate::commands::board) times: LocalTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Dim,
    Bold,
    Accent,
    Good,
    Warn,
    Bad,
}

impl Look {
    pub(super) fn style(&self, tone: Tone) -> Style {
        let style = Style::new();
        let colored = |color: Color| if self.color { style.fg(color) } else { style };
        match tone {
            Tone::Plain => style,
            Tone::Dim => style.add_modifier(Modifier::DIM),
            Tone::Bold => style.add_modifier(Modifier::BOLD),
            Tone::Accent => colored(Color::Cyan),
            Tone::Good => colored(Color::Green),
            Tone::Warn => colored(Color::Yellow),
            Tone::Bad => colored(Color::Red),
        }
    }

    pub(super) fn span(&self, tone: Tone, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(tone))
    }

    /// Stored text of several lines, each broken into lines of at most `width` columns.
    pub(super) fn wrapped(&self, tone: Tone, text: &str, indent: usize, width: usize) -> Vec<Line<'static>> {
        let room = width.saturating_sub(indent).max(1);
        let lines = text.lines().flat_map(|line| broken(&escape_line(line), room));
        lines.map(|line| Line::from(self.span(tone, format!("{}{line}", " ".repeat(indent))))).collect()
    }
}

/// Stored text in exactly `width` columns.
pub(super) fn cell(text: &str, width: usize) -> String {
    let cut = cut_to(&escape_line(text), width);
    let used = cut.width();
    format!("{cut}{}", " ".repeat(width.saturating_sub(used)))
}

/// Stored text in at most `width` columns.
pub(super) fn short(text: &str, width: usize) -> String {
    cut_to(&escape_line(text), width)
}

/// A large number with separators, as people read it.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The time since `then`, such as `12m`.
pub(super) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A remaining time, such as `45s`, `28m`, `1h58m` or `3d`.
pub(super) fn span_of(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 if seconds % 3600 >= 60 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// One character for a status. Blocked pending tasks have a different one.
pub(super) fn mark(status: TaskStatus, is_blocked: bool) -> (char, Tone) {
    match status {
        TaskStatus::Pending if is_blocked => ('·', Tone::Dim),
        TaskStatus::Pending => ('○', Tone::Plain),
        TaskStatus::InProgress => ('●', Tone::Accent),
        TaskStatus::Review => ('?', Tone::Warn),
        TaskStatus::Failed => ('✗', Tone::Bad),
        TaskStatus::Completed => ('✓', Tone::Good),
        TaskStatus::Skipped => ('–', Tone::Dim),
    }
}

/// A line in parts of at most `room` columns, broken between words where that is possible. Never empty.
fn broken(line: &str, room: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().width();
        if used > 0 && used + width > room {
            parts.push(String::new());
            used = 0;
        }
        for letter in word.chars() {
            let wide = letter.width().unwrap_or(0);
            if used + wide > room && letter != ' ' {
                parts.push(String::new());
                used = 0;
            }
            if let Some(part) = parts.last_mut() {
                part.push(letter);
            }
            used += wide;
        }
    }
    for part in &mut parts {
        part.truncate(part.trim_end().len());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_or_within_one_that_is_too_long() {
        assert_eq!(broken("one two three", 7), ["one two", "three"]);
        assert_eq!(broken("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(broken("日本語", 4), ["日本", "語"]);
        assert_eq!(broken("", 4), [""]);
    }

    #[test]
    fn a_cell_has_its_width_and_no_control_characters() {
        assert_eq!(cell("ab", 4), "ab  ");
        assert_eq!(cell("日本語", 4), "日… ");
        assert_eq!(cell("a\x1b[2Jb\n", 20).trim_end(), r"a\x1b[2Jb\n");
    }

    #[test]
    fn times_are_shown_in_few_characters() {
        let shown = |seconds: u64| span_of(Duration::from_secs(seconds));
        assert_eq!([0, 59, 60, 3599].map(shown), ["0s", "59s", "1m", "59m"]);
        assert_eq!([3600, 7138, 90_000, 900_000].map(shown), ["1h", "1h58m", "25h", "10d"]);
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        assert_eq!([at(61), at(7300), at(200_000)].map(|now| age(now, at(0))), ["1m", "2h", "2d"]);
        assert_eq!(age(at(0), at(9)), "0s");
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
