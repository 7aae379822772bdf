//! Tables: columns under headings, fitted to the terminal.

use tenure_core::text::escape_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::{Span, Style};

/// A heading, and what happens to the cells below it if a row is wider than the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    heading: &'static str,
    fit: Fit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Shown in full.
    Keep,
    /// Only the beginning is shown.
    CutEnd,
    /// Only the end is shown.
    CutStart,
}

/// A column that is never shortened: keys, states, times and numbers.
pub(crate) const fn keep(heading: &'static str) -> Column {
    Column { heading, fit: Fit::Keep }
}

/// A column that is shortened at its end: titles and other text.
pub(crate) const fn cut(heading: &'static str) -> Column {
    Column { heading, fit: Fit::CutEnd }
}

/// A column that is shortened at its start: paths, whose last parts differ.
pub(crate) const fn cut_start(heading: &'static str) -> Column {
    Column { heading, fit: Fit::CutStart }
}

/// Columns under headings. On a terminal the widest column that may be shortened is shortened until a row fits; elsewhere
/// nothing is shortened.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<(Style, String)>>,
    is_ruled: bool,
}

const GAP: usize = 2;
/// A column is not shortened below the first width, and if that is not enough, not below the second.
const NARROWEST: [usize; 2] = [8, 4];

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), is_ruled: false }
    }

    /// Draws a line above and below the headings.
    #[must_use]
    pub(crate) fn ruled(mut self) -> Self {
        self.is_ruled = true;
        self
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| (Style::Plain, cell.into())).collect());
    }

    pub(crate) fn styled_row(&mut self, cells: Vec<(Style, String)>) {
        self.rows.push(cells);
    }

    /// The heading and the rows, fitted to `room` columns if possible.
    pub(crate) fn lay_out(&self, room: Option<usize>) -> Vec<Vec<Span>> {
        let headings = self.columns.iter().map(|column| (Style::Bold, column.heading.to_owned())).collect();
        let rows: Vec<Vec<(Style, String)>> = std::iter::once(headings)
            .chain(self.rows.iter().map(|row| {
                row.iter().map(|(style, cell)| (*style, escape_line(cell).into_owned())).collect()
            }))
            .collect();
        let mut widths: Vec<usize> = vec![0; self.columns.len()];
        for row in &rows {
            for (width, (_, cell)) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        if let Some(room) = room {
            self.shrink(&mut widths, room);
        }
        let mut lines: Vec<Vec<Span>> = rows.into_iter().map(|row| self.spans(row, &widths)).collect();
        if self.is_ruled {
            let width = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            for at in [1, 0] {
                lines.insert(at, vec![Span { style: Style::Dim, text: "─".repeat(width) }]);
            }
        }
        lines
    }

    fn shrink(&self, widths: &mut [usize], room: usize) {
        for narrowest in NARROWEST {
            self.shrink_to(widths, room, narrowest);
        }
    }

    fn shrink_to(&self, widths: &mut [usize], room: usize, narrowest: usize) {
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > room {
            let widest = widths
                .iter_mut()
                .zip(&self.columns)
                .filter(|(width, column)| column.fit != Fit::Keep && **width > narrowest)
                .map(|(width, _)| width)
                .max();
            let Some(widest) = widest else { return };
            *widest -= 1;
        }
    }

    fn spans(&self, row: Vec<(Style, String)>, widths: &[usize]) -> Vec<Span> {
        let last = widths.len().saturating_sub(1);
        row.into_iter()
            .zip(widths.iter().zip(&self.columns))
            .enumerate()
            .map(|(index, ((style, cell), (width, column)))| {
                let mut text = fitted(cell, *width, column.fit);
                if index < last {
                    let pad = width.saturating_sub(text.width()) + GAP;
                    text.push_str(&" ".repeat(pad));
                }
                Span { style, text }
            })
            .collect()
    }
}

/// The beginning of the text, at most `width` columns, with an ellipsis at the cut.
pub(crate) fn cut_to(text: &str, width: usize) -> String {
    fitted(text.to_owned(), width, Fit::CutEnd)
}

/// Shortens the cell to at most `width` columns, with an ellipsis at the cut.
fn fitted(cell: String, width: usize, fit: Fit) -> String {
    if cell.width() <= width {
        return cell;
    }
    let room = width.saturating_sub(1);
    if fit == Fit::CutStart {
        let kept: Vec<char> = within(cell.chars().rev(), room).collect();
        return std::iter::once('…').chain(kept.into_iter().rev()).collect();
    }
    within(cell.chars(), room).chain(std::iter::once('…')).collect()
}

/// The first characters, as many as fit into `room` columns.
fn within(chars: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    let mut used = 0;
    chars.take_while(move |c| {
        used += c.width().unwrap_or(0);
        used <= room
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(table: &Table, room: Option<usize>) -> Vec<String> {
        let line = |spans: Vec<Span>| spans.into_iter().map(|span| span.text).collect::<String>();
        table.lay_out(room).into_iter().map(line).collect()
    }

    #[test]
    fn a_table_fits_the_terminal_by_cutting_its_widest_column() {
        let mut table = Table::new([keep("KEY"), cut("SECTION"), cut("TITLE")]);
        table.row(["T1", "Backend", &"long ".repeat(40)]);
        table.row(["T2", "日本語日本語日本語", &"漢字".repeat(40)]);
        let lines = shown(&table, Some(40));
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:#?}");
        assert!(lines[1].contains("Backend") && lines[1].ends_with('…'), "{lines:#?}");
    }

    #[test]
    fn a_key_is_never_cut() {
        let key = "a-key-that-takes-more-than-half-of-the-row-of-a-terminal";
        let mut table = Table::new([keep("KEY"), cut("TITLE"), cut_start("PATH")]);
        table.row([key, &"long ".repeat(40), "/home/ann/projects/shop"]);
        let lines = shown(&table, Some(80));
        assert!(lines.iter().all(|line| line.width() <= 80), "{lines:#?}");
        assert!(lines[1].contains(key), "{lines:#?}");
        assert!(shown(&table, Some(20))[1].contains(key));
    }

    #[test]
    fn a_path_keeps_its_end() {
        let mut table = Table::new([keep("NAME"), cut_start("PATH")]);
        table.row(["shop", "/home/ann/a/rather/long/way/to/shop"]);
        assert_eq!(shown(&table, Some(20))[1], "shop  …g/way/to/shop");
    }

    #[test]
    fn a_table_for_a_program_is_never_cut() {
        let mut table = Table::new([keep("KEY"), cut("TITLE")]);
        table.row(["T1", &"x".repeat(300)]);
        assert!(shown(&table, None)[1].contains(&"x".repeat(300)));
    }
}
