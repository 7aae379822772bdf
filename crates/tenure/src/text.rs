//! Text for people: lines of styled spans.
//!
//! Guarantees: every span is escaped when it is rendered, so stored text cannot move the cursor, change colours or
//! reverse the writing direction. Only styles emit escape sequences. On a terminal a line that is too long is broken
//! between words; the rows of a table and commands that are meant to be pasted are not.

use std::fmt::Write as _;

use tenure_core::text::escape_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::table::Table;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Bad => "\x1b[31m",
            Self::Warn => "\x1b[33m",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) style: Style,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Default)]
struct Line {
    spans: Vec<Span>,
    /// Whether a line that is wider than the terminal is broken between words.
    breaks: bool,
    /// The extra indent of the parts after the first, if the line is broken.
    hang: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    lines: Vec<Line>,
}

/// How text is rendered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenderOptions {
    pub(crate) color: bool,
    /// The width that tables and lines are fitted to; `None` if the output is not a terminal.
    pub(crate) width: Option<usize>,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn line(&mut self, text: impl Into<String>) -> &mut Self {
        self.styled(Style::Plain, text)
    }

    pub(crate) fn styled(&mut self, style: Style, text: impl Into<String>) -> &mut Self {
        self.lines.push(Line { spans: vec![Span { style, text: text.into() }], breaks: true, hang: 0 });
        self
    }

    /// A line with a command to paste, which is never broken.
    pub(crate) fn hint(&mut self, why: &str, command: &str) -> &mut Self {
        let why = Span { style: Style::Dim, text: format!("  {why}: ") };
        let command = Span { style: Style::Plain, text: command.to_owned() };
        self.lines.push(Line { spans: vec![why, command], breaks: false, hang: 0 });
        self
    }

    /// Continues the last line.
    pub(crate) fn and(&mut self, style: Style, text: impl Into<String>) -> &mut Self {
        let span = Span { style, text: text.into() };
        match self.lines.last_mut() {
            Some(line) => line.spans.push(span),
            None => self.lines.push(Line { spans: vec![span], breaks: true, hang: 0 }),
        }
        self
    }

    /// Indents the further parts of the last line, if it has to be broken.
    pub(crate) fn hang(&mut self, by: usize) -> &mut Self {
        if let Some(line) = self.lines.last_mut() {
            line.hang = by;
        }
        self
    }

    /// The width of the last line.
    pub(crate) fn last_width(&self) -> usize {
        let spans = self.lines.last().map(|line| line.spans.as_slice()).unwrap_or_default();
        spans.iter().map(|span| escape_line(&span.text).width()).sum()
    }

    pub(crate) fn blank(&mut self) -> &mut Self {
        self.lines.push(Line::default());
        self
    }

    /// A text of several lines, each indented.
    pub(crate) fn block(&mut self, indent: usize, text: &str) -> &mut Self {
        for line in text.lines() {
            self.line(format!("{}{line}", " ".repeat(indent)));
        }
        self
    }

    /// Continues the last line with the last line of another text.
    pub(crate) fn join(&mut self, mut other: Self) -> &mut Self {
        for span in other.lines.pop().unwrap_or_default().spans {
            self.and(span.style, span.text);
        }
        self
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    pub(crate) fn table(&mut self, table: &Table, options: RenderOptions) -> &mut Self {
        self.lines.extend(table.lay_out(options.width).into_iter().map(|spans| Line {
            spans,
            breaks: false,
            hang: 0,
        }));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn render(&self, options: RenderOptions) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let room = options.width.filter(|_| line.breaks);
            let spans = line.spans.iter().map(|span| (span.style, escape_line(&span.text)));
            match room {
                None => spans.for_each(|(style, shown)| write_span(&mut out, options.color, style, &shown)),
                Some(room) => {
                    let cells: Vec<(Style, char)> = spans
                        .flat_map(|(style, shown)| shown.chars().map(move |c| (style, c)).collect::<Vec<_>>())
                        .collect();
                    write_broken(&mut out, options.color, &cells, room, line.hang);
                }
            }
            out.push('\n');
        }
        out
    }
}

fn write_span(out: &mut String, color: bool, style: Style, shown: &str) {
    if color && style != Style::Plain && !shown.is_empty() {
        let _ = write!(out, "{}{shown}\x1b[0m", style.code());
    } else {
        out.push_str(shown);
    }
}

/// Writes one line, broken between words so that no part is wider than `room`. A word that is wider than that is not broken.
/// The parts after the first are indented like the first, and by `hang` more.
fn write_broken(out: &mut String, color: bool, cells: &[(Style, char)], room: usize, hang: usize) {
    let first_indent = cells.iter().take_while(|(_, c)| *c == ' ').count();
    let indent = first_indent + hang;
    let mut rest = cells;
    let mut first = true;
    while !rest.is_empty() {
        if !first {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        }
        let (room, from) = if first { (room, first_indent) } else { (room.saturating_sub(indent), 0) };
        let end = break_at(rest, room, from);
        for part in rest[..end].chunk_by(|a, b| a.0 == b.0) {
            let shown: String = part.iter().map(|(_, c)| *c).collect();
            write_span(out, color, part[0].0, &shown);
        }
        let spaces = rest[end..].iter().take_while(|(_, c)| *c == ' ').count();
        rest = &rest[end + spaces..];
        first = false;
    }
}

/// Where to break the line: after the last word that fits into `room`, or after the first word. Spaces before `from` are
/// the indent.
fn break_at(cells: &[(Style, char)], room: usize, from: usize) -> usize {
    let mut width = 0;
    let mut last_fit = None;
    for (index, (_, c)) in cells.iter().enumerate() {
        let is_behind_a_word = index > from && cells[index - 1].1 != ' ';
        if *c == ' ' && is_behind_a_word {
            if width > room {
                return last_fit.unwrap_or(index);
            }
            last_fit = Some(index);
        }
        width += c.width().unwrap_or(0);
    }
    if width > room { last_fit.unwrap_or(cells.len()) } else { cells.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: RenderOptions = RenderOptions { color: false, width: None };

    fn shown(text: &Text, width: usize) -> String {
        text.render(RenderOptions { color: false, width: Some(width) })
    }

    #[test]
    fn what_a_user_stored_cannot_move_the_cursor() {
        let mut text = Text::new();
        text.line("a\x1b[2Jb\u{202e}c\nd");
        assert!(!text.render(PLAIN).trim_end().contains(['\x1b', '\u{202e}', '\n']));
        assert!(!shown(&text, 10).trim_end().contains(['\x1b', '\u{202e}']));
    }

    #[test]
    fn a_long_line_is_broken_between_words_and_keeps_its_indent_and_styles() {
        let mut text = Text::new();
        text.styled(Style::Bold, "  what happens when").and(Style::Plain, " the holder vanishes");
        assert_eq!(shown(&text, 20), "  what happens when\n  the holder\n  vanishes\n");
        let colored = text.render(RenderOptions { color: true, width: Some(20) });
        assert!(colored.starts_with("\x1b[1m  what happens when\x1b[0m\n  the"), "{colored:?}");
        assert_eq!(text.render(PLAIN), "  what happens when the holder vanishes\n");
    }

    #[test]
    fn the_parts_of_a_line_can_hang() {
        let mut text = Text::new();
        text.line(" 1  task.status bob pending").hang(4);
        assert_eq!(shown(&text, 16), " 1  task.status\n     bob pending\n");
    }

    #[test]
    fn a_word_that_is_wider_than_the_terminal_is_not_broken() {
        let mut text = Text::new();
        text.line(format!("see {} now", "x".repeat(30)));
        assert_eq!(shown(&text, 10), format!("see\n{}\nnow\n", "x".repeat(30)));
        let mut only = Text::new();
        only.line(format!("    {}", "x".repeat(30)));
        assert_eq!(shown(&only, 10), format!("    {}\n", "x".repeat(30)));
    }

    #[test]
    fn a_line_that_just_fits_is_not_broken() {
        let mut text = Text::new();
        text.line("0123 56789").line("日本 語日 本").line("").line("   ");
        assert_eq!(shown(&text, 10), "0123 56789\n日本 語日\n本\n\n   \n");
    }

    #[test]
    fn a_command_to_paste_is_never_broken() {
        let mut text = Text::new();
        text.hint("see all commands", "tenure tasks list --status all");
        assert_eq!(shown(&text, 20).lines().count(), 1);
    }
}
