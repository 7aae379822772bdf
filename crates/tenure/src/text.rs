//! Text for people: lines of styled spans, and tables.
//!
//! Guarantees: every span is escaped when it is rendered, so stored text cannot move the cursor, change colours or
//! reverse the writing direction. Only styles emit escape sequences.

use std::fmt::Write as _;

use tenure_core::text::escape_line;
use unicode_width::UnicodeWidthStr;

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
    style: Style,
    text: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    lines: Vec<Vec<Span>>,
}

/// How text is rendered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenderOptions {
    pub(crate) color: bool,
    /// The width that tables are fitted to; `None` if the output is not a terminal.
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
        self.lines.push(vec![Span { style, text: text.into() }]);
        self
    }

    /// Continues the last line.
    pub(crate) fn and(&mut self, style: Style, text: impl Into<String>) -> &mut Self {
        let span = Span { style, text: text.into() };
        match self.lines.last_mut() {
            Some(line) => line.push(span),
            None => self.lines.push(vec![span]),
        }
        self
    }

    pub(crate) fn blank(&mut self) -> &mut Self {
        self.lines.push(Vec::new());
        self
    }

    /// A text of several lines, each indented.
    pub(crate) fn block(&mut self, indent: usize, text: &str) -> &mut Self {
        for line in text.lines() {
            self.line(format!("{}{line}", " ".repeat(indent)));
        }
        self
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    pub(crate) fn table(&mut self, table: &Table, options: RenderOptions) -> &mut Self {
        self.lines.extend(table.lay_out(options));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn render(&self, options: RenderOptions) -> String {
        let mut out = String::new();
        for line in &self.lines {
            for span in line {
                let shown = escape_line(&span.text);
                if options.color && span.style != Style::Plain && !shown.is_empty() {
                    let _ = write!(out, "{}{shown}\x1b[0m", span.style.code());
                } else {
                    out.push_str(&shown);
                }
            }
            out.push('\n');
        }
        out
    }
}

/// Columns under headings. On a terminal the widest column is shortened until a row fits; elsewhere nothing is shortened.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<(Style, String)>>,
}

const GAP: usize = 2;
const NARROWEST: usize = 8;

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| (Style::Plain, cell.into())).collect());
    }

    pub(crate) fn styled_row(&mut self, cells: Vec<(Style, String)>) {
        self.rows.push(cells);
    }

    fn lay_out(&self, options: RenderOptions) -> Vec<Vec<Span>> {
        let shown: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|(_, cell)| escape_line(cell).into_owned()).collect())
            .collect();
        let mut widths: Vec<usize> = self.headings.iter().map(|h| h.width()).collect();
        for row in &shown {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        if let Some(room) = options.width {
            shrink(&mut widths, room);
        }
        let mut lines = Vec::new();
        lines.push(spans(self.headings.iter().map(|h| (Style::Bold, (*h).to_owned())), &widths));
        for (row, cells) in self.rows.iter().zip(shown) {
            lines.push(spans(row.iter().map(|(style, _)| *style).zip(cells), &widths));
        }
        lines
    }
}

fn shrink(widths: &mut [usize], room: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > room {
        let Some(widest) = widths.iter_mut().max() else { return };
        if *widest <= NARROWEST {
            return;
        }
        *widest -= 1;
    }
}

fn spans(cells: impl Iterator<Item = (Style, String)>, widths: &[usize]) -> Vec<Span> {
    let last = widths.len().saturating_sub(1);
    cells
        .zip(widths)
        .enumerate()
        .map(|(index, ((style, cell), width))| {
            let mut text = cut(&cell, *width);
            if index < last {
                let pad = width.saturating_sub(text.width()) + GAP;
                text.push_str(&" ".repeat(pad));
            }
            Span { style, text }
        })
        .collect()
}

/// Shortens the text to at most `width` columns, with an ellipsis at the cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if kept.width() + 1 > width {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: RenderOptions = RenderOptions { color: false, width: None };

    #[test]
    fn what_a_user_stored_cannot_move_the_cursor() {
        let mut text = Text::new();
        text.line("a\x1b[2Jb\u{202e}c\nd");
        assert!(!text.render(PLAIN).trim_end().contains(['\x1b', '\u{202e}', '\n']));
    }

    #[test]
    fn a_table_fits_the_terminal_by_cutting_its_widest_column() {
        let mut table = Table::new(&["KEY", "TITLE"]);
        table.row(["T1", &"long ".repeat(40)]);
        let mut text = Text::new();
        let options = RenderOptions { color: false, width: Some(40) };
        text.table(&table, options);
        assert!(text.render(options).lines().all(|line| line.width() <= 40));
        assert!(text.render(options).contains('…'));
    }

    #[test]
    fn a_table_for_a_program_is_never_cut() {
        let mut table = Table::new(&["KEY", "TITLE"]);
        table.row(["T1", &"x".repeat(300)]);
        let mut text = Text::new();
        text.table(&table, PLAIN);
        assert!(text.render(PLAIN).contains(&"x".repeat(300)));
    }
}
