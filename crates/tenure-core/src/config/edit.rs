//! Changing one value in a YAML text.
//!
//! Guarantees that the result reads back with exactly the wanted value, that every other value, comment and note is
//! still there, and that no byte changed but those of the value (or of the lines added for it). A text where
//! this would not hold is refused, not attempted: the plan below may be naive, the proof after it is not.

use granit_parser::ScalarStyle;

use super::document::Document;
use super::error::{ConfigError, Place};
use super::keys::{self, Kind, Known};
use super::nearest::nearest;
use super::splice::{Splices, insert_into, line_end};
use super::tree;
use super::value::Value;
use super::wrapper::{NOTES, Unwrapped, unwrap};
use super::write;
use crate::yaml::{Content, Entry, Node};

/// The text with `key` set to `value`, as given on a command line and typed by the key.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let kind = match keys::find(key) {
        Some(Known::Key(known)) => known.kind,
        Some(Known::Group) => return Err(ConfigError::NotAValue { key: key.to_owned() }),
        None => {
            let (key, place) = (key.to_owned(), Place::Request);
            return Err(ConfigError::UnknownKey { nearest: nearest(&key, []), key, place });
        }
    };
    let wanted = Value::from_text(kind, key, value, &Place::Request)?;
    let before = Reading::of(text)?;
    if before.document.setting(key).is_some_and(|setting| setting.value == wanted) {
        return Ok(text.to_owned());
    }
    let written = Written::new(kind, &wanted, value)?;
    let path: Vec<&str> = key.split('.').collect();
    let edited = plan(text, before.root.as_ref(), &path, &written)
        .and_then(|splices| splices.apply(text))
        .ok_or_else(|| cannot(key, "it is written in a form that cannot be changed in place"))?;
    let after = Reading::of(&edited)
        .map_err(|_| cannot(key, "it is written in a form that cannot be changed in place"))?;
    if before.comments != after.comments || before.notes() != after.notes() {
        return Err(cannot(key, "a comment would be lost"));
    }
    if !before.document.differs_only_in(key, &wanted, &after.document) {
        return Err(cannot(key, "other values depend on it"));
    }
    Ok(edited)
}

fn cannot(key: &str, reason: &str) -> ConfigError {
    ConfigError::CannotEdit { key: key.to_owned(), reason: reason.to_owned() }
}

/// A text with everything that an edit must keep.
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
    fn differs_only_in(&self, key: &str, wanted: &Value, after: &Self) -> bool {
        let others = |document: &Self| {
            let mut others: Vec<(String, Value)> = Vec::new();
            for setting in document.settings.iter().filter(|setting| setting.key != key) {
                others.push((setting.key.clone(), setting.value.clone()));
            }
            others.sort_by(|a, b| a.0.cmp(&b.0));
            others
        };
        after.setting(key).is_some_and(|setting| setting.value == *wanted) && others(self) == others(after)
    }
}

/// The new value as YAML.
pub(super) struct Written {
    /// For texts, which are quoted as their place needs it.
    text: Option<String>,
    other: String,
}

impl Written {
    fn new(kind: Kind, wanted: &Value, given: &str) -> Result<Self, ConfigError> {
        Ok(match (kind, wanted) {
            (_, Value::Text(text) | Value::Duration(text, _)) => {
                Self { text: Some(text.clone()), other: String::new() }
            }
            // Written as given: what a hook leaves out stays left out.
            (Kind::Hooks, _) => {
                let json = tree::parse(given)?.as_ref().map(write::json_of).unwrap_or_default();
                Self { text: None, other: write::flow_json(&json) }
            }
            (_, other) => Self { text: None, other: other.to_string() },
        })
    }

    pub(super) fn fresh(&self, flow: bool) -> String {
        self.like(ScalarStyle::Plain, flow)
    }

    fn like(&self, style: ScalarStyle, flow: bool) -> String {
        self.text.as_ref().map_or_else(|| self.other.clone(), |text| write::text_like(text, style, flow))
    }
}

fn plan(text: &str, root: Option<&Node<'_>>, path: &[&str], written: &Written) -> Option<Splices> {
    let Some(mut node) = root else {
        return Some(Splices::append_lines(text, path, written));
    };
    let mut holder: Option<&Entry<'_>> = None;
    let mut flow = false;
    for (index, segment) in path.iter().enumerate() {
        if let Unwrapped::Value(entry) = unwrap(node, false) {
            flow |= is_flow(node);
            (holder, node) = (Some(entry), &entry.value);
        }
        if node.aliased {
            return None;
        }
        if node.is_null() {
            return match holder {
                Some(holder) => Splices::fill(text, holder, flow, &path[index..], written),
                None if node.span.is_empty() => Some(Splices::append_lines(text, path, written)),
                None => None,
            };
        }
        flow |= is_flow(node);
        match node.entry(segment) {
            Some(entry) => (holder, node) = (Some(entry), &entry.value),
            None => return insert_into(text, node, flow, &path[index..], written),
        }
    }
    match unwrap(node, !matches!(keys::find(&path.join(".")), Some(Known::Key(key)) if key.kind == Kind::Map))
    {
        Unwrapped::Itself => {}
        Unwrapped::Value(entry) => {
            flow |= is_flow(node);
            (holder, node) = (Some(entry), &entry.value);
        }
        Unwrapped::Nothing => return insert_into(text, node, flow || is_flow(node), &["value"], written),
    }
    if node.aliased { None } else { replace(text, holder?, node, flow, written) }
}

fn is_flow(node: &Node<'_>) -> bool {
    matches!(node.content, Content::Map { flow: true, .. } | Content::List { flow: true, .. })
}

fn replace(
    text: &str,
    holder: &Entry<'_>,
    node: &Node<'_>,
    flow: bool,
    written: &Written,
) -> Option<Splices> {
    match &node.content {
        Content::Scalar { style: ScalarStyle::Literal | ScalarStyle::Folded, .. } => {
            let colon = super::splice::colon_end(text, holder)?;
            Some(Splices::one(colon..node.span.end, format!(" {}", written.fresh(flow))))
        }
        Content::Scalar { .. } if node.span.is_empty() => Splices::fill(text, holder, flow, &[], written),
        Content::Scalar { style, .. } => Some(Splices::one(node.span.clone(), written.like(*style, flow))),
        _ if is_flow(node) => Some(Splices::one(node.span.clone(), written.fresh(flow))),
        // The items go; a comment beside the key stays where it is.
        _ => {
            let colon = super::splice::colon_end(text, holder)?;
            let first_line_end = line_end(text, colon);
            if first_line_end > node.span.start {
                return None;
            }
            let mut splices = Splices::one(colon..colon, format!(" {}", written.fresh(flow)));
            splices.add(first_line_end..node.span.end, String::new());
            Some(splices)
        }
    }
}

#[cfg(test)]
mod tests;
