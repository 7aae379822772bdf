//! Changes or removes one value in a YAML text.
//!
//! Guarantees that the result parses to exactly the requested value or has none, that every other value, comment and note is
//! unchanged, and that only the bytes of the value (or the lines added for it) change. Only settings in block style
//! are edited; a key inside a flow mapping, an alias or a block scalar is refused. [`set`] and [`unset`] parse the edited
//! text again and compare everything, so an incorrect edit is refused, never returned.

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::document::Document;
use super::error::{ConfigError, Location};
use super::keys::{self, Kind, KnownName};
use super::nearest::nearest;
use super::tree;
use super::value::Value;
use super::wrapper::{NOTES, Unwrapped, unwrap};
use super::write;
use crate::yaml::{Content, Entry, Node};

/// The text with `key` set to `value`, which is parsed according to the type of the key.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let kind = kind_of(key)?;
    let wanted = Value::from_text(kind, key, value, &Location::Request)?;
    let before = Reading::of(text)?;
    if before.document.setting(key).is_some_and(|setting| setting.value == wanted) {
        return Ok(text.to_owned());
    }
    let cannot = |reason: &str| ConfigError::CannotEdit { key: key.to_owned(), reason: reason.to_owned() };
    let new = NewValue::of(kind, &wanted, value)?;
    let path: Vec<&str> = key.split('.').collect();
    let splice = plan(text, before.root.as_ref(), &path, kind, &new).map_err(cannot)?;
    apply(text, &before, splice, key, Some(&wanted)).map_err(cannot)
}

/// The text without a value for `key`. Its comments and notes stay.
pub fn unset(text: &str, key: &str) -> Result<String, ConfigError> {
    let kind = kind_of(key)?;
    let before = Reading::of(text)?;
    if before.document.setting(key).is_none() {
        return Ok(text.to_owned());
    }
    let cannot = |reason: &str| ConfigError::CannotEdit { key: key.to_owned(), reason: reason.to_owned() };
    let path: Vec<&str> = key.split('.').collect();
    let splice = removal(text, before.root.as_ref(), &path, kind).map_err(cannot)?;
    apply(text, &before, splice, key, None).map_err(cannot)
}

fn kind_of(key: &str) -> Result<Kind, ConfigError> {
    match keys::find(key) {
        Some(KnownName::Key(known)) => Ok(known.kind),
        Some(KnownName::Group) => Err(ConfigError::NotAValue { key: key.to_owned() }),
        None => {
            let (key, location) = (key.to_owned(), Location::Request);
            Err(ConfigError::UnknownKey { nearest: nearest(&key, []), key, location })
        }
    }
}

/// Edits the text, and checks that only the value of `key` has changed.
fn apply(
    text: &str,
    before: &Reading<'_>,
    (range, with): Splice,
    key: &str,
    wanted: Option<&Value>,
) -> Result<String, &'static str> {
    let parts = text.get(..range.start).zip(text.get(range.end..));
    let edited = parts.map(|(start, end)| format!("{start}{with}{end}")).ok_or(UNSUPPORTED)?;
    let after = Reading::of(&edited).map_err(|_| UNSUPPORTED)?;
    if before.comments != after.comments || before.notes() != after.notes() {
        return Err("a comment would be lost");
    }
    if !before.document.differs_only_in(key, wanted, &after.document) {
        return Err("other values depend on it");
    }
    Ok(edited)
}

/// The parts of a text that an edit must preserve.
struct Reading<'a> {
    root: Option<Node<'a>>,
    document: Document,
    comments: Vec<&'a str>,
}

impl<'a> Reading<'a> {
    fn of(text: &'a str) -> Result<Self, ConfigError> {
        let mut comments = Vec::new();
        let root = tree::parse_noting(text, &mut comments)?;
        let document = root.as_ref().map_or_else(|| Ok(Document::default()), Document::from_root)?;
        Ok(Self { root, document, comments })
    }

    fn notes(&self) -> Vec<serde_json::Value> {
        fn collect(node: &Node<'_>, notes: &mut Vec<serde_json::Value>) {
            let Content::Map { entries, .. } = &node.content else { return };
            for entry in entries {
                if NOTES.contains(&entry.key.as_ref()) {
                    notes.push(write::json_of(&entry.value));
                } else {
                    collect(&entry.value, notes);
                }
            }
        }
        let mut notes = Vec::new();
        self.root.iter().for_each(|root| collect(root, &mut notes));
        notes
    }
}

impl Document {
    fn differs_only_in(&self, key: &str, wanted: Option<&Value>, after: &Self) -> bool {
        let others = |document: &Self| {
            let others = document.settings.iter().filter(|setting| setting.key != key);
            let mut others: Vec<_> = others.map(|other| (other.key.clone(), other.value.clone())).collect();
            others.sort_by(|a, b| a.0.cmp(&b.0));
            others
        };
        after.setting(key).map(|setting| &setting.value) == wanted && others(self) == others(after)
    }
}

/// The new value as YAML on one line.
enum NewValue<'v> {
    /// Quoted like the value it replaces.
    Text(&'v str),
    Other(String),
}

impl<'v> NewValue<'v> {
    fn of(kind: Kind, wanted: &'v Value, given: &str) -> Result<Self, ConfigError> {
        Ok(match (kind, wanted) {
            (_, Value::Text(text) | Value::Duration(text, _)) => Self::Text(text),
            // Written as given, so that the defaults of a hook are not spelled out.
            (Kind::Hooks, _) => {
                let json = tree::parse(given)?.as_ref().map(write::json_of).unwrap_or_default();
                Self::Other(write::flow_json(&json))
            }
            (_, other) => Self::Other(other.to_string()),
        })
    }

    fn in_style(&self, style: ScalarStyle) -> String {
        match self {
            Self::Text(text) => write::text_like(text, style),
            Self::Other(yaml) => yaml.clone(),
        }
    }
}

const FLOW: &str = "it is inside a flow mapping `{…}`";
const ALIAS: &str = "it is an alias `*…` of another value";
const BLOCK_SCALAR: &str = "it is a block scalar `|` or `>`";
const UNSUPPORTED: &str = "the file writes it in an unusual form";

/// A byte range of the text and its replacement.
type Splice = (Range<usize>, String);

fn plan(
    text: &str,
    root: Option<&Node<'_>>,
    path: &[&str],
    kind: Kind,
    new: &NewValue<'_>,
) -> Result<Splice, &'static str> {
    let Some(mut node) = root else { return Ok(lines_at(text, text.len(), 0, path, new)) };
    let mut holder: Option<&Entry<'_>> = None;
    for (index, segment) in path.iter().enumerate() {
        if let Unwrapped::Value(entry) = unwrap(node, false) {
            block_entries(node)?;
            (holder, node) = (Some(entry), &entry.value);
        }
        if node.is_null() && node.span.is_empty() && !node.aliased {
            let Some(holder) = holder else { return Ok(lines_at(text, text.len(), 0, path, new)) };
            let colon = colon_end(text, holder).ok_or(UNSUPPORTED)?;
            return Ok(lines_below(text, colon, holder.key_at.column + 1, &path[index..], new));
        }
        let entries = block_entries(node)?;
        let Some(entry) = node.entry(segment) else { return append(text, entries, &path[index..], new) };
        (holder, node) = (Some(entry), &entry.value);
    }
    match unwrap(node, kind != Kind::Map) {
        Unwrapped::Itself => {}
        Unwrapped::Value(entry) => {
            block_entries(node)?;
            (holder, node) = (Some(entry), &entry.value);
        }
        Unwrapped::Nothing => return append(text, block_entries(node)?, &["value"], new),
    }
    replace(text, holder.ok_or(UNSUPPORTED)?, node, new)
}

/// Removes the lines of an entry; of an annotated one only the line of its value. A comment after the value stays.
fn removal(text: &str, root: Option<&Node<'_>>, path: &[&str], kind: Kind) -> Result<Splice, &'static str> {
    let mut node = root.ok_or(UNSUPPORTED)?;
    let mut holder: Option<&Entry<'_>> = None;
    for segment in path {
        if let Unwrapped::Value(entry) = unwrap(node, false) {
            block_entries(node)?;
            node = &entry.value;
        }
        block_entries(node)?;
        let entry = node.entry(segment).ok_or(UNSUPPORTED)?;
        (holder, node) = (Some(entry), &entry.value);
    }
    if let Unwrapped::Value(entry) = unwrap(node, kind != Kind::Map) {
        block_entries(node)?;
        (holder, node) = (Some(entry), &entry.value);
    }
    let holder = holder.ok_or(UNSUPPORTED)?;
    let start = text[..holder.key_span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = &text[start..holder.key_span.start];
    if !indent.bytes().all(|byte| byte == b' ') {
        return Err(UNSUPPORTED);
    }
    let end = node.span.end.max(colon_end(text, holder).ok_or(UNSUPPORTED)?);
    let line = text[end..].split('\n').next().unwrap_or_default();
    let comment = line.trim_start_matches([' ', '\t']);
    if comment.starts_with('#') {
        return Ok((start..end + line.len() - comment.len(), indent.to_owned()));
    }
    // The end of a block is after its last line break.
    let is_line_end = text[..end].ends_with('\n');
    let next = if is_line_end { end } else { (end + line.len() + 1).min(text.len()) };
    Ok((start..next, String::new()))
}

/// The entries of a mapping in block style.
fn block_entries<'n, 'a>(node: &'n Node<'a>) -> Result<&'n [Entry<'a>], &'static str> {
    match &node.content {
        _ if node.aliased => Err(ALIAS),
        Content::Map { flow: true, .. } => Err(FLOW),
        Content::Map { entries, .. } => Ok(entries),
        _ => Err(UNSUPPORTED),
    }
}

fn replace(
    text: &str,
    holder: &Entry<'_>,
    node: &Node<'_>,
    new: &NewValue<'_>,
) -> Result<Splice, &'static str> {
    let plain = || new.in_style(ScalarStyle::Plain);
    match &node.content {
        _ if node.aliased => Err(ALIAS),
        Content::Scalar { style: ScalarStyle::Literal | ScalarStyle::Folded, .. } => Err(BLOCK_SCALAR),
        Content::Scalar { .. } if node.span.is_empty() => {
            let colon = colon_end(text, holder).ok_or(UNSUPPORTED)?;
            Ok((colon..colon, format!(" {}", plain())))
        }
        Content::Scalar { style, .. } => Ok((node.span.clone(), new.in_style(*style))),
        Content::List { flow: true, .. } | Content::Map { flow: true, .. } => {
            Ok((node.span.clone(), plain()))
        }
        // The lines of the items are removed; a comment on the line of the key stays there.
        Content::List { .. } | Content::Map { .. } => {
            let colon = colon_end(text, holder).ok_or(UNSUPPORTED)?;
            let line = text[colon..].split('\n').next().unwrap_or_default();
            let line = line.strip_suffix('\r').unwrap_or(line);
            if colon + line.len() > node.span.start {
                return Err(UNSUPPORTED);
            }
            Ok((colon..node.span.end, format!(" {}{line}", plain())))
        }
    }
}

/// Adds an entry after the last one of a block mapping.
fn append(
    text: &str,
    entries: &[Entry<'_>],
    path: &[&str],
    new: &NewValue<'_>,
) -> Result<Splice, &'static str> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Err(UNSUPPORTED) };
    let end = last.value.span.end.max(last.key_span.end);
    Ok(lines_below(text, end, first.key_at.column - 1, path, new))
}

/// Inserts lines below the line that contains the byte `after`.
fn lines_below(text: &str, after: usize, indent: usize, path: &[&str], new: &NewValue<'_>) -> Splice {
    let rest = text.get(after..).unwrap_or_default();
    let next = rest.find('\n').map_or(text.len(), |newline| after + newline + 1);
    lines_at(text, next, indent, path, new)
}

fn lines_at(text: &str, at: usize, indent: usize, path: &[&str], new: &NewValue<'_>) -> Splice {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines =
        path.iter().enumerate().map(|(depth, key)| format!("{}{key}:", " ".repeat(indent + 2 * depth)));
    let lines = lines.collect::<Vec<_>>().join(newline);
    let lines = format!("{lines} {}", new.in_style(ScalarStyle::Plain));
    let starts_line = matches!(&text[..at], "" | "\u{feff}") || text[..at].ends_with('\n');
    // A file without a final line break stays without one.
    (at..at, if starts_line { format!("{lines}{newline}") } else { format!("{newline}{lines}") })
}

/// The byte after the colon that follows a key.
fn colon_end(text: &str, entry: &Entry<'_>) -> Option<usize> {
    let after = text.get(entry.key_span.end..)?;
    let rest = after.trim_start_matches([' ', '\t']);
    rest.starts_with(':').then_some(entry.key_span.end + after.len() - rest.len() + 1)
}

#[cfg(test)]
mod tests;
