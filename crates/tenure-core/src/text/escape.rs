//! Escaping text from untrusted sources for display.
//!
//! Guarantees: the result contains no C0 or C1 control, no DEL, no bidirectional control and no character of
//! Unicode's category Cf, except newline and tab in [`escape_block`] and a zero-width joiner between two visible
//! non-ASCII characters (needed by composed emoji). Clean text is borrowed, not copied.

use std::borrow::Cow;
use std::fmt::Write as _;

/// For text within a line: newlines and tabs are escaped as well.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, false, push_escaped)
}

/// For text of several lines: newlines and tabs are kept.
pub fn escape_block(text: &str) -> Cow<'_, str> {
    escape(text, true, push_escaped)
}

/// For a line of JSON: the escapes are JSON's, so the values stay the same.
pub fn escape_json(text: &str) -> Cow<'_, str> {
    escape(text, false, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escape(text: &str, block: bool, push_escaped: fn(&mut String, char)) -> Cow<'_, str> {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Cow::Borrowed(text);
    }
    let mut shown: Option<String> = None;
    let mut before: Option<char> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|&(_, next)| next);
        let stays = match c {
            '\n' | '\t' => block,
            '\u{200d}' => before.is_some_and(can_be_joined) && after.is_some_and(can_be_joined),
            _ => !is_invisible(c),
        };
        match (&mut shown, stays) {
            (None, true) => {}
            (None, false) => {
                let mut copy = String::with_capacity(text.len() + 16);
                copy.push_str(&text[..at]);
                push_escaped(&mut copy, c);
                shown = Some(copy);
            }
            (Some(copy), true) => copy.push(c),
            (Some(copy), false) => push_escaped(copy, c),
        }
        before = Some(c);
    }
    shown.map_or(Cow::Borrowed(text), Cow::Owned)
}

fn can_be_joined(c: char) -> bool {
    !c.is_ascii() && !is_invisible(c)
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => {
            let code = u32::from(c);
            // Writing to a String cannot fail.
            let _ =
                if c.is_control() { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
        }
    }
}

/// Controls, line and paragraph separators, the category Cf of Unicode 16, and the whole tag plane, whose unassigned
/// code points are invisible as well.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x180e
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
            | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff)
}
