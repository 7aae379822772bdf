//! Annotated values: `{_description: …, _default: …, value: …}`.

use crate::yaml::{Content, Entry, Node};

pub(super) const NOTES: [&str; 2] = ["_description", "_default"];

pub(super) enum Unwrapped<'n, 'a> {
    /// Not a wrapper.
    Itself,
    /// The entry that holds the value.
    Value(&'n Entry<'a>),
    /// A wrapper without a value.
    Nothing,
}

/// Unwraps an annotated value. Where a mapping can itself be a value (`lone` is false), a mapping without annotations
/// is not a wrapper.
pub(super) fn unwrap<'n, 'a>(node: &'n Node<'a>, lone: bool) -> Unwrapped<'n, 'a> {
    let Content::Map { entries, .. } = &node.content else { return Unwrapped::Itself };
    let is_note = |entry: &Entry<'_>| NOTES.contains(&entry.key.as_ref());
    let only = entries.iter().all(|entry| is_note(entry) || entry.key == "value");
    if entries.is_empty() || !only || !(lone || entries.iter().any(is_note)) {
        return Unwrapped::Itself;
    }
    node.entry("value").map_or(Unwrapped::Nothing, Unwrapped::Value)
}
