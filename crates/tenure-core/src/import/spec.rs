//! The structure of a lodestar spec: its entries in file order, each with its line.
//!
//! Guarantees: every duplicate key is detected, and under `tasks` both entries are kept, so that the error can name
//! both lines. The expansion of aliases is bounded by the size of the text.

use serde_json::{Map, Value};

use super::{Format, ImportError};
use crate::yaml::{self, Content, Limits, Node, ScalarStyle, YamlError};

#[derive(Default)]
pub(super) struct Spec {
    pub(super) tasks: Vec<SpecEntry>,
    pub(super) features: Vec<SpecEntry>,
    pub(super) others: Vec<SpecEntry>,
}

pub(super) struct SpecEntry {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) value: Value,
}

impl Spec {
    /// The spec, and an error if a key occurs twice anywhere.
    pub(super) fn parse(text: &str) -> Result<(Self, Option<ImportError>), ImportError> {
        // Each value takes at least a byte, so only the expansion of aliases can exceed these limits.
        let limits =
            Limits { bytes: text.len().max(1 << 20), nodes: text.len().max(250_000), keep_duplicates: true };
        let read = yaml::read(text, limits, None).map_err(unreadable)?;
        let Some(root) = read.root.filter(|root| !root.is_null()) else {
            return Err(syntax(1, "the file is empty"));
        };
        let Content::Map { entries, .. } = root.content else {
            return Err(syntax(root.at.line, "this is not a lodestar spec: a mapping with `tasks`"));
        };
        let mut spec = Self::default();
        let mut has_tasks = false;
        for entry in entries {
            let line = entry.key_at.line;
            match entry.key.as_ref() {
                "tasks" if has_tasks => return Err(syntax(line, "`tasks` occurs twice")),
                "tasks" => {
                    has_tasks = true;
                    spec.tasks = entries_of("tasks", entry.value)?;
                }
                "features" => spec.features = entries_of("features", entry.value)?,
                name => spec.others.push(SpecEntry { name: name.to_owned(), line, value: json(entry.value) }),
            }
        }
        if !has_tasks {
            return Err(syntax(1, "the file has no `tasks`"));
        }
        Ok((spec, read.duplicate.map(unreadable)))
    }
}

/// The front matter of a file of another tool.
pub(super) fn front_matter_object(text: &str, format: Format) -> Result<Map<String, Value>, ImportError> {
    let limits =
        Limits { bytes: text.len().max(1 << 20), nodes: text.len().max(250_000), keep_duplicates: false };
    let of_format = |error: YamlError| match unreadable(error) {
        ImportError::Syntax { line, message, .. } => ImportError::Syntax { format, line, message },
        other => other,
    };
    let read = yaml::read(text, limits, None).map_err(of_format)?;
    match read.root.map(json) {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

fn entries_of(name: &str, node: Node<'_>) -> Result<Vec<SpecEntry>, ImportError> {
    if node.is_null() {
        return Ok(Vec::new());
    }
    let Content::Map { entries, .. } = node.content else {
        return Err(syntax(node.at.line, &format!("`{name}` must be a mapping by key")));
    };
    let entry = |entry: yaml::Entry<'_>| SpecEntry {
        name: entry.key.into_owned(),
        line: entry.key_at.line,
        value: json(entry.value),
    };
    Ok(entries.into_iter().map(entry).collect())
}

/// A value according to YAML's core schema. Of duplicate keys the last counts, and the import is refused later.
fn json(node: Node<'_>) -> Value {
    match node.content {
        Content::Scalar { text, style: ScalarStyle::Plain } => plain(&text),
        Content::Scalar { text, .. } => Value::String(text.into_owned()),
        Content::List { items, .. } => Value::Array(items.into_iter().map(json).collect()),
        Content::Map { entries, .. } => {
            let fields = entries.into_iter().map(|entry| (entry.key.into_owned(), json(entry.value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok().map(Value::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok().map(Value::from);
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !digits.contains(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    match text.parse::<i64>() {
        Ok(whole) => Some(Value::from(whole)),
        Err(_) => text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from),
    }
}

fn unreadable(error: YamlError) -> ImportError {
    match error {
        YamlError::Syntax { problem, at } => syntax(at.line, &problem),
        YamlError::TooLarge { bytes, limit } => {
            syntax(1, &format!("the file has {bytes} bytes; the limit is {limit}"))
        }
        YamlError::DuplicateKey { key, at, first } => {
            syntax(at.line, &format!("the key {key:?} was already given on line {}", first.line))
        }
    }
}

fn syntax(line: usize, message: &str) -> ImportError {
    ImportError::Syntax { format: Format::Lodestar, line: line.max(1), message: message.to_owned() }
}
