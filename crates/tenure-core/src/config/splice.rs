//! Where new text goes, so that what surrounds it stays byte for byte.

use std::ops::Range;

use super::edit::Written;
use crate::yaml::{Content, Entry, Node};

/// Replacements of byte ranges, in the order of the text.
#[derive(Debug)]
pub(super) struct Splices(Vec<(Range<usize>, String)>);

impl Splices {
    pub(super) fn one(range: Range<usize>, with: String) -> Self {
        Self(vec![(range, with)])
    }

    pub(super) fn add(&mut self, range: Range<usize>, with: String) {
        self.0.push((range, with));
    }

    /// The changed text; `None` if a range does not fit the text.
    pub(super) fn apply(self, text: &str) -> Option<String> {
        let mut changed = String::with_capacity(text.len() + 64);
        let mut from = 0;
        for (range, with) in self.0 {
            changed.push_str(text.get(from..range.start)?);
            changed.push_str(&with);
            from = range.end;
        }
        changed.push_str(text.get(from..)?);
        Some(changed)
    }

    /// New lines at the very end.
    pub(super) fn append_lines(text: &str, path: &[&str], written: &Written) -> Self {
        Self::lines_at(text, text.len(), 0, path, written)
    }

    /// New lines below the line that has the byte `after`.
    fn lines_below(
        text: &str,
        after: usize,
        indent: usize,
        path: &[&str],
        written: &Written,
    ) -> Option<Self> {
        let next = text.get(after..)?.find('\n').map_or(text.len(), |at| after + at + 1);
        Some(Self::lines_at(text, next, indent, path, written))
    }

    fn lines_at(text: &str, at: usize, indent: usize, path: &[&str], written: &Written) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut lines = String::new();
        let begins_line = text[..at].is_empty() || text[..at].ends_with('\n') || text[..at] == *"\u{feff}";
        if !begins_line {
            lines.push_str(newline);
        }
        for (depth, segment) in path.iter().enumerate() {
            lines.push_str(&" ".repeat(indent + 2 * depth));
            lines.push_str(segment);
            lines.push(':');
            if depth + 1 == path.len() {
                lines.push(' ');
                lines.push_str(&written.fresh(false));
            }
            // A file that ended without a line break keeps ending so.
            if depth + 1 < path.len() || begins_line || at < text.len() {
                lines.push_str(newline);
            }
        }
        Self::one(at..at, lines)
    }

    /// A value for a key that has none, with further groups in between if `path` names some.
    pub(super) fn fill(
        text: &str,
        holder: &Entry<'_>,
        flow: bool,
        path: &[&str],
        written: &Written,
    ) -> Option<Self> {
        let empty = &holder.value.span;
        if !empty.is_empty() {
            return Some(Self::one(empty.clone(), flow_path(path, written, flow)));
        }
        let Some(colon) = colon_end(text, holder) else {
            let end = holder.key_span.end;
            return flow.then(|| Self::one(end..end, format!(": {}", flow_path(path, written, flow))));
        };
        if flow || path.is_empty() {
            return Some(Self::one(colon..colon, format!(" {}", flow_path(path, written, flow))));
        }
        Self::lines_below(text, colon, holder.key_at.column + 1, path, written)
    }
}

/// A new entry at the end of a mapping.
pub(super) fn insert_into(
    text: &str,
    map: &Node<'_>,
    flow: bool,
    path: &[&str],
    written: &Written,
) -> Option<Splices> {
    let Content::Map { entries, .. } = &map.content else { return None };
    let (first, rest) = path.split_first()?;
    let entry = || format!("{first}: {}", flow_path(rest, written, true));
    match entries.last() {
        None if flow => Some(Splices::one(map.span.start + 1..map.span.start + 1, entry())),
        None => None,
        Some(last) if flow => {
            // After the colon, if that is all the last entry has.
            let end = colon_end(text, last).unwrap_or(last.key_span.end).max(last.value.span.end);
            Some(Splices::one(end..end, format!(", {}", entry())))
        }
        Some(last) => {
            let end = last.value.span.end.max(last.key_span.end);
            Splices::lines_below(text, end, entries.first()?.key_at.column - 1, path, written)
        }
    }
}

fn flow_path(path: &[&str], written: &Written, flow: bool) -> String {
    match path.split_first() {
        None => written.fresh(flow),
        Some((first, rest)) => format!("{{{first}: {}}}", flow_path(rest, written, true)),
    }
}

/// The byte after the colon that follows a key.
pub(super) fn colon_end(text: &str, entry: &Entry<'_>) -> Option<usize> {
    let after = text.get(entry.key_span.end..)?;
    let spaces = after.len() - after.trim_start_matches([' ', '\t']).len();
    after[spaces..].starts_with(':').then_some(entry.key_span.end + spaces + 1)
}

/// Where the line that has the byte `from` ends, before its line break.
pub(super) fn line_end(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default();
    from + line.strip_suffix('\r').unwrap_or(line).len()
}
