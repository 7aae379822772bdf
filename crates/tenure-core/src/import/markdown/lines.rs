//! Classifies single lines of Markdown.

use std::borrow::Cow;

/// The column of the text (tab stops of four), and the text.
pub(super) fn indent(line: &str) -> (usize, &str) {
    let mut column = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => column += 1,
            '\t' => column += 4 - column % 4,
            _ if c.is_whitespace() => {}
            _ => return (column, &line[at..]),
        }
    }
    (column, "")
}

/// The line without its first `columns` columns of white space.
pub(super) fn dedent(line: &str, columns: usize) -> Cow<'_, str> {
    let (column, text) = indent(line);
    if column <= columns {
        return Cow::Borrowed(text);
    }
    Cow::Owned(" ".repeat(column - columns) + text)
}

pub(super) struct HeadingLine {
    pub(super) line: usize,
    pub(super) level: usize,
    pub(super) text: String,
}

/// `## Text ##`.
pub(super) fn heading(line: usize, text: &str) -> Option<HeadingLine> {
    let level = text.bytes().take_while(|&b| b == b'#').count();
    let rest = text.get(level..)?;
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest = rest.trim();
    let bare = rest.trim_end_matches('#');
    let is_closed = bare.is_empty() || bare.ends_with([' ', '\t']);
    let text = if is_closed { bare.trim_end() } else { rest };
    Some(HeadingLine { line, level, text: text.to_owned() })
}

/// `---`, `* * *`, `___`.
pub(super) fn is_break(text: &str) -> bool {
    let mut marks = text.bytes().filter(|b| !b.is_ascii_whitespace());
    let Some(mark @ (b'-' | b'*' | b'_')) = marks.next() else { return false };
    let mut count = 1;
    marks.all(|b| {
        count += 1;
        b == mark
    }) && count >= 3
}

/// An open code block.
pub(super) struct CodeFence {
    mark: u8,
    length: usize,
    /// Text left of this column is outside of the list item that contains the block.
    pub(super) column: usize,
}

impl CodeFence {
    pub(super) fn opened_by(text: &str) -> Option<Self> {
        let mark = text.bytes().next().filter(|&b| b == b'`' || b == b'~')?;
        let length = text.bytes().take_while(|&b| b == mark).count();
        let is_inline = mark == b'`' && text.get(length..).is_some_and(|info| info.contains('`'));
        (length >= 3 && !is_inline).then_some(Self { mark, length, column: 0 })
    }

    pub(super) fn is_closed_by(&self, text: &str) -> bool {
        let text = text.trim_end();
        text.len() >= self.length && text.bytes().all(|b| b == self.mark)
    }
}

/// The text after a comment that starts here or was already open; `None` if it does not end on this line.
pub(super) fn comment_at_start(text: &str, is_open: bool) -> Option<&str> {
    let inner = if is_open { text } else { text.strip_prefix("<!--").unwrap_or(text) };
    inner.split_once("-->").map(|(_, after)| after)
}

/// The line without comments that start and end on it. Comments in `code` are kept.
pub(super) fn without_comments(line: &str) -> Cow<'_, str> {
    if !line.contains("<!--") {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut is_code = false;
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("<!--") {
        out.push_str(before);
        is_code ^= before.bytes().filter(|&b| b == b'`').count() % 2 == 1;
        // The end is searched only outside of code, so a line of unclosed comments takes linear time.
        if is_code {
            out.push_str("<!--");
            rest = after;
            continue;
        }
        let Some((_, next)) = after.split_once("-->") else {
            out.push_str("<!--");
            rest = after;
            break;
        };
        rest = next;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The number of lines of front matter at the top.
pub(super) fn front_matter(text: &str) -> usize {
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return 0;
    }
    lines.position(|line| matches!(line.trim_end(), "---" | "...")).map_or(0, |last| last + 2)
}
