//! Writing single values as YAML on one line, quoted only where YAML needs it.

use std::fmt::Write as _;

use granit_parser::ScalarStyle;
use serde_json::Value as Json;

use crate::yaml::{Content, Node};

/// A text as a YAML scalar. Inside `[]` and `{}` (`flow`) fewer texts may go without quotes.
pub(super) fn text(text: &str, flow: bool) -> String {
    if is_plain(text, flow) { text.to_owned() } else { double_quoted(text) }
}

/// A text in the quotes that the value had before, so that an edit changes no more than it must.
pub(super) fn text_like(text: &str, style: ScalarStyle, flow: bool) -> String {
    match style {
        ScalarStyle::DoubleQuoted => double_quoted(text),
        ScalarStyle::SingleQuoted if text.chars().all(is_printable) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        _ => self::text(text, flow),
    }
}

/// Lists and maps in flow style: `[a, b]`, `{MODEL: large}`.
pub(super) fn flow_json(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        Json::String(text) => self::text(text, true),
        Json::Array(items) => format!("[{}]", items.iter().map(flow_json).collect::<Vec<_>>().join(", ")),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| format!("{}: {}", text(key, true), flow_json(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// What a node says, with only those scalars as numbers and booleans that are written back the same.
pub(super) fn json_of(node: &Node<'_>) -> Json {
    match &node.content {
        _ if node.is_null() => Json::Null,
        Content::Scalar { text, style: ScalarStyle::Plain } => match (text.as_ref(), text.parse::<u64>()) {
            ("true", _) => Json::Bool(true),
            ("false", _) => Json::Bool(false),
            (text, Ok(number)) if number.to_string() == text => Json::from(number),
            (text, _) => Json::from(text),
        },
        Content::Scalar { text, .. } => Json::from(text.as_ref()),
        Content::List { items, .. } => items.iter().map(json_of).collect(),
        Content::Map { entries, .. } => {
            entries.iter().map(|entry| (entry.key.clone().into_owned(), json_of(&entry.value))).collect()
        }
    }
}

/// Whether any YAML reader takes this for the same text without quotes. Narrower than YAML's own rule, so that nobody
/// has to know that rule to trust it.
fn is_plain(text: &str, flow: bool) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_'))
        || text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with("~/");
    let inside =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | '+' | '-' | '=' | ' ' | '~');
    let colons_end_nothing = !flow && !text.ends_with(':') && !text.contains(": ");
    starts_well
        && !text.ends_with(' ')
        && text.chars().all(|c| inside(c) || (c == ':' && colons_end_nothing))
        && !means_something_else(text)
}

/// Texts that some YAML version reads as a number, a date, a boolean or nothing.
fn means_something_else(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let numeric = |c: char| {
        c.is_ascii_hexdigit() || matches!(c, '.' | '_' | '-' | '+' | ':' | 'x' | 'o' | ' ' | 'T' | 'Z')
    };
    words.contains(&text.to_ascii_lowercase().as_str())
        || (text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(numeric) && !is_uuid(text))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.matches('-').count() == 4
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if is_printable(c) => quoted.push(c),
            c => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Control characters, separators and invisible marks are escaped: the file stays readable and on one line.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        && !matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree;
    use proptest::prelude::*;

    #[test]
    fn texts_are_quoted_only_where_needed() {
        for plain in
            ["claude", "./agent.sh", "~/Projects", "two words", "018f3b1e-0000-7000-8000-000000000000", "30s"]
        {
            assert_eq!(text(plain, true), plain);
        }
        for odd in [
            "",
            "true",
            "No",
            "12",
            "1e3",
            "0x1f",
            "2024-01-01",
            "- a",
            "a: b",
            "a #b",
            " a",
            "a ",
            "a,b",
            "{a}",
            "*x",
        ] {
            assert_eq!(text(odd, true), format!("\"{odd}\""));
        }
        assert_eq!(text("https://host/x", false), "https://host/x");
        assert_eq!(text("https://host/x", true), "\"https://host/x\"");
        assert_eq!(text("a\u{202e}\n\"\\", false), "\"a\\U0000202e\\n\\\"\\\\\"");
    }

    proptest! {
        #[test]
        fn every_text_reads_back_as_itself(given in any::<String>(), flow: bool, quotes in 0..3usize) {
            let style = [ScalarStyle::Plain, ScalarStyle::SingleQuoted, ScalarStyle::DoubleQuoted][quotes];
            let written = text_like(&given, style, flow);
            let yaml = if flow { format!("k: [{written}, x]") } else { format!("k: [\n  ]\nv: {written} # c\n") };
            let root = tree::parse(&yaml).unwrap().unwrap();
            let read = if flow { json_of(&root)["k"][0].clone() } else { json_of(&root)["v"].clone() };
            prop_assert_eq!(read.as_str(), Some(given.as_str()), "{}", yaml);
        }
    }
}
