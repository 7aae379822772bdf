//! Writes values as YAML on one line, quoted only where YAML requires it.

use granit_parser::ScalarStyle;
use serde_json::Value as Json;

use crate::yaml::{Content, Node};

/// A text as a YAML scalar. Inside `[]` and `{}` (`flow`), more texts need quotes.
fn text(text: &str, flow: bool) -> String {
    if is_plain(text, flow) { text.to_owned() } else { double_quoted(text) }
}

/// A text outside of flow collections, in the quoting style of the value that it replaces.
pub(super) fn text_like(text: &str, style: ScalarStyle) -> String {
    match style {
        ScalarStyle::DoubleQuoted => double_quoted(text),
        ScalarStyle::SingleQuoted if text.chars().all(is_printable) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        _ => self::text(text, false),
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

/// A node as JSON. A plain scalar becomes a number or boolean only if writing it back gives the same text.
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

/// Whether every YAML reader reads the unquoted text as the same string. Deliberately narrower than YAML's own rule,
/// which is hard to verify.
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

/// Whether some YAML version reads the text as a number, a date, a boolean or null.
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

/// JSON's escapes are also valid in YAML.
fn double_quoted(text: &str) -> String {
    let escape = |c: char| if is_printable(c) { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) };
    Json::from(text).to_string().chars().map(escape).collect()
}

/// False for control characters, line separators and invisible characters, which are escaped so that the value stays
/// readable and on one line.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        && !matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

#[cfg(test)]
mod tests;
