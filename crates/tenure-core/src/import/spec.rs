//! The outline of a lodestar spec: its entries in the order of the file, each with its line.
//!
//! Guarantees: no key that occurs twice is overlooked, and under `tasks` both are kept where that is possible, so
//! that the error can name both lines. The parser's budgets are on, and grow only with the size of the text.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::{Format, ImportError};

#[derive(Default)]
pub(super) struct Spec {
    pub(super) tasks: Vec<Entry>,
    pub(super) features: Vec<Entry>,
    pub(super) others: Vec<Entry>,
}

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) value: Value,
}

impl Spec {
    /// The spec, and the parser's complaint if some key occurs twice anywhere.
    pub(super) fn parse(text: &str) -> Result<(Self, Option<ImportError>), ImportError> {
        if text.trim().is_empty() {
            return Err(syntax(1, "the file is empty"));
        }
        match read(text, DuplicateKeyPolicy::Error) {
            Ok(spec) => Ok((spec, None)),
            // The lenient reading succeeds only if the strict one failed for a key that occurs twice.
            Err(error) => match read(text, DuplicateKeyPolicy::LastWins) {
                Ok(spec) => Ok((spec, Some(error))),
                Err(_) => Err(error),
            },
        }
    }
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Spec, ImportError> {
    // Each node takes at least a byte, so only what aliases unfold can exceed these.
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: text.len().max(250_000),
            max_events: text.len().saturating_mul(2).max(1_000_000),
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        let message = error.without_snippet().to_string();
        let said = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
        syntax(line, said)
    })
}

fn syntax(line: usize, message: &str) -> ImportError {
    ImportError::Syntax { format: Format::Lodestar, line: line.max(1), message: message.to_owned() }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SpecVisitor)
    }
}

struct SpecVisitor;

impl<'de> Visitor<'de> for SpecVisitor {
    type Value = Spec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a lodestar spec: a mapping with `tasks`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Spec, A::Error> {
        let mut spec = Spec::default();
        let mut has_tasks = false;
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            match name.value.as_str() {
                "tasks" if has_tasks => return Err(serde::de::Error::duplicate_field("tasks")),
                "tasks" => {
                    has_tasks = true;
                    spec.tasks = map.next_value::<Option<Entries>>()?.unwrap_or_default().0;
                }
                "features" => spec.features = map.next_value::<Option<Entries>>()?.unwrap_or_default().0,
                _ => {
                    let value = map.next_value()?;
                    spec.others.push(Entry { line: line_of(&name), name: name.value, value });
                }
            }
        }
        if has_tasks { Ok(spec) } else { Err(serde::de::Error::missing_field("tasks")) }
    }
}

#[derive(Default)]
struct Entries(Vec<Entry>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping by key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let value = map.next_value()?;
            entries.push(Entry { line: line_of(&name), name: name.value, value });
        }
        Ok(Entries(entries))
    }
}

fn line_of(name: &Spanned<String>) -> usize {
    usize::try_from(name.referenced.line()).unwrap_or(0)
}
