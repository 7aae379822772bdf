//! The value of one setting: parsing and displaying it.

use std::collections::BTreeMap;
use std::time::Duration;

use granit_parser::ScalarStyle;
use serde_json::json;

use super::error::{ConfigError, Location};
use super::hook::{self, Hook};
use super::keys::Kind;
use super::size;
use super::tree;
use super::types::Permissions;
use super::wrapper::{Unwrapped, unwrap};
use super::write;
use crate::yaml::{Content, Node};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// With the original notation: `120m` is displayed as `120m`.
    Duration(String, Duration),
    Count(u32),
    /// The text, and the bytes.
    Size(String, u64),
    Flag(bool),
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    Hooks(Vec<Hook>),
}

impl Value {
    /// Parses a value from a file. An empty value, `~` and a wrapper without `value` mean "not set here".
    pub(super) fn from_node(kind: Kind, key: &str, node: &Node<'_>) -> Result<Option<Self>, ConfigError> {
        let node = match unwrap(node, kind != Kind::Map) {
            Unwrapped::Itself => node,
            Unwrapped::Value(entry) => &entry.value,
            Unwrapped::Nothing => return Ok(None),
        };
        if node.is_null() {
            return Ok(None);
        }
        let wrong = || bad(key, kind.expected(), node);
        let value = match (kind, &node.content) {
            (Kind::Count | Kind::Flag, Content::Scalar { text, style: ScalarStyle::Plain })
            | (
                Kind::Ttl
                | Kind::Duration
                | Kind::DurationOrZero
                | Kind::Size
                | Kind::Text
                | Kind::Permissions
                | Kind::Uuid,
                Content::Scalar { text, .. },
            ) => Self::from_word(kind, text).ok_or_else(wrong)?,
            (Kind::List | Kind::Command, Content::List { items, .. }) => {
                let items = items.iter().map(|item| text_of(key, item)).collect::<Result<Vec<_>, _>>()?;
                if kind == Kind::Command && items.first().is_none_or(String::is_empty) {
                    return Err(wrong());
                }
                Self::List(items)
            }
            (Kind::Map, Content::Map { entries, .. }) => {
                let mut map = BTreeMap::new();
                for entry in entries {
                    if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
                        return Err(wrong());
                    }
                    let key = format!("{key}.{}", entry.key);
                    map.insert(entry.key.clone().into_owned(), text_of(&key, &entry.value)?);
                }
                Self::Map(map)
            }
            (Kind::Hooks, Content::List { items, .. }) => Self::Hooks(hook::read_all(items)?),
            _ => return Err(wrong()),
        };
        Ok(Some(value))
    }

    /// Parses a value given as a single text: a flag, an environment variable, or the argument of `config set`.
    pub(super) fn from_text(
        kind: Kind,
        key: &str,
        text: &str,
        location: &Location,
    ) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::BadValue {
            key: key.to_owned(),
            location: location.clone(),
            expected: kind.expected().to_owned(),
            got: quoted(text),
        };
        if matches!(kind, Kind::List | Kind::Command | Kind::Map | Kind::Hooks) {
            let read = || Self::from_node(kind, key, &tree::parse(text)?.ok_or_else(wrong)?);
            return read().map_err(|error| error.moved_to(key, location))?.ok_or_else(wrong);
        }
        Self::from_word(kind, text).ok_or_else(wrong)
    }

    fn from_word(kind: Kind, text: &str) -> Option<Self> {
        match kind {
            Kind::Ttl | Kind::Duration | Kind::DurationOrZero => {
                kind.read_duration(text).ok().map(|duration| Self::Duration(text.trim().to_owned(), duration))
            }
            Kind::Count if text.starts_with(|c: char| c.is_ascii_digit()) => {
                text.parse().ok().filter(|count| *count > 0).map(Self::Count)
            }
            Kind::Size => size::parse(text).map(|bytes| Self::Size(text.trim().to_owned(), bytes)),
            Kind::Flag => match text {
                "true" | "True" | "TRUE" => Some(Self::Flag(true)),
                "false" | "False" | "FALSE" => Some(Self::Flag(false)),
                _ => None,
            },
            Kind::Text if !text.contains('\0') => Some(Self::Text(text.to_owned())),
            Kind::Permissions => Permissions::parse(text).map(|_| Self::Text(text.to_owned())),
            Kind::Uuid => uuid::Uuid::try_parse(text).ok().map(|_| Self::Text(text.to_owned())),
            _ => None,
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Duration(text, _) | Self::Size(text, _) | Self::Text(text) => json!(text),
            Self::Count(count) => json!(count),
            Self::Flag(flag) => json!(flag),
            Self::List(items) => json!(items),
            Self::Map(map) => json!(map),
            Self::Hooks(hooks) => hooks.iter().map(Hook::to_json).collect(),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duration(text, _) | Self::Size(text, _) | Self::Text(text) => f.write_str(text),
            Self::Count(count) => count.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(_) | Self::Map(_) | Self::Hooks(_) => f.write_str(&write::flow_json(&self.to_json())),
        }
    }
}

/// Text is taken literally: `MODEL: 4` is the text `4`.
fn text_of(key: &str, node: &Node<'_>) -> Result<String, ConfigError> {
    match &node.content {
        Content::Scalar { text, .. } if !node.is_null() && !text.contains('\0') => {
            Ok(text.clone().into_owned())
        }
        _ => Err(bad(key, Kind::Text.expected(), node)),
    }
}

pub(super) fn bad(key: &str, expected: &str, node: &Node<'_>) -> ConfigError {
    ConfigError::BadValue {
        key: key.to_owned(),
        location: Location::File(node.at),
        expected: expected.to_owned(),
        got: describe(node),
    }
}

pub(super) fn describe(node: &Node<'_>) -> String {
    match &node.content {
        _ if node.is_null() => "nothing".to_owned(),
        Content::Scalar { text, style: ScalarStyle::Plain } => quoted(text),
        Content::Scalar { text, .. } => format!("the text {}", quoted(text)),
        Content::List { .. } => "a list".to_owned(),
        Content::Map { .. } => "a group of settings".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
