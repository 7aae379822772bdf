//! Parses one configuration file and checks it against the table of keys.

use super::error::{ConfigError, Location, Position};
use super::hook::Hook;
use super::keys::{self, Authority, Kind, KnownName};
use super::nearest::nearest;
use super::tree;
use super::value::{Value, bad, describe};
use super::wrapper::{NOTES, Unwrapped, unwrap};
use crate::yaml::{Content, Node};

/// The settings of one file. Every key in it is known and every value has its key's type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub(super) settings: Vec<DocumentSetting>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocumentSetting {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) at: Position,
    pub(super) authority: Authority,
}

impl Document {
    /// Parses the text of a file. An empty file, or one with only comments, is valid and sets nothing.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        tree::parse(text)?.as_ref().map_or_else(|| Ok(Self::default()), Self::from_root)
    }

    pub(super) fn from_root(root: &Node<'_>) -> Result<Self, ConfigError> {
        let mut document = Self::default();
        if !root.is_null() {
            if !matches!(root.content, Content::Map { .. }) {
                return Err(ConfigError::NotSettings { got: describe(root), at: root.at });
            }
            document.read_group("", root)?;
        }
        Ok(document)
    }

    /// Whether it sets a key that counts only if the file is trusted.
    pub fn needs_trust(&self) -> bool {
        self.settings.iter().any(|setting| setting.authority == Authority::NeedsTrust)
    }

    pub fn hooks(&self) -> &[Hook] {
        match self.setting("hooks").map(|setting| &setting.value) {
            Some(Value::Hooks(hooks)) => hooks,
            _ => &[],
        }
    }

    pub(super) fn setting(&self, key: &str) -> Option<&DocumentSetting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    fn read_group(&mut self, group: &str, node: &Node<'_>) -> Result<(), ConfigError> {
        let node = match unwrap(node, false) {
            Unwrapped::Itself => node,
            Unwrapped::Value(entry) => &entry.value,
            Unwrapped::Nothing => return Ok(()),
        };
        if node.is_null() {
            return Ok(());
        }
        let Content::Map { entries, .. } = &node.content else {
            return Err(bad(group, "a group of settings", node));
        };
        for entry in entries {
            let name = entry.key.as_ref();
            if NOTES.contains(&name) {
                continue;
            }
            let location = || Location::File(entry.key_at);
            if group == "presets" && !keys::is_name(name) {
                return Err(ConfigError::BadValue {
                    key: format!("presets.{name}"),
                    location: location(),
                    expected: "named with at most 64 letters, digits, `-` and `_`".to_owned(),
                    got: format!("{name:?}"),
                });
            }
            let path = if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") };
            match keys::find(&path) {
                Some(_) if name.contains('.') => {
                    let problem = format!("{name:?} must be written as nested groups, not with a dot");
                    return Err(ConfigError::Syntax { problem, at: entry.key_at });
                }
                Some(KnownName::Group) => self.read_group(&path, &entry.value)?,
                Some(KnownName::Key(key)) => {
                    if let Some(value) = Value::from_node(key.kind, &path, &entry.value)? {
                        let at = if key.kind == Kind::Hooks { entry.key_at } else { entry.value.at };
                        let authority = key.authority;
                        self.settings.push(DocumentSetting { key: path, value, at, authority });
                    }
                }
                None => {
                    return Err(ConfigError::UnknownKey {
                        nearest: nearest(&path, []),
                        key: path,
                        location: location(),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
