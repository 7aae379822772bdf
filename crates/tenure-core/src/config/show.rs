//! The output of `config show` and `config get`. Passwords in `store.url` are always masked.

use serde_json::{Value as Json, json};

use super::error::{ConfigError, Location};
use super::keys::{self, KEYS, KnownName};
use super::nearest::nearest;
use super::origin::Origin;
use super::resolve::Effective;
use super::types::Config;
use super::write::flow_json;

/// A key with its effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    pub key: String,
    /// Null if not set.
    pub value: Json,
    /// In the notation of a file; empty if not set.
    pub display: String,
    pub origin: Origin,
    pub about: &'static str,
}

/// The result of looking up a dotted name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Lookup {
    Setting(Setting),
    Group { name: String, entries: Vec<Setting> },
}

impl Lookup {
    /// The value, or an object of all values below a group.
    pub fn value(&self) -> Json {
        let (name, entries) = match self {
            Self::Setting(entry) => return entry.value.clone(),
            Self::Group { name, entries } => (name, entries),
        };
        let mut root = json!({});
        for entry in entries {
            let below = entry.key.strip_prefix(name.as_str()).unwrap_or(&entry.key);
            let mut slot = &mut root;
            for segment in below.split('.').filter(|segment| !segment.is_empty()) {
                slot = &mut slot[segment];
            }
            *slot = entry.value.clone();
        }
        root
    }

    /// The value as text, or one line `key: value` for each key of a group.
    pub fn display(&self) -> String {
        match self {
            Self::Setting(entry) => entry.display.clone(),
            Self::Group { entries, .. } => {
                let lines: Vec<String> =
                    entries.iter().map(|entry| format!("{}: {}", entry.key, entry.display)).collect();
                lines.join("\n")
            }
        }
    }
}

impl Config {
    /// Every key in the order of the table; presets and hooks individually.
    pub fn entries(&self) -> Vec<Setting> {
        let mut entries: Vec<Setting> = self.settings.iter().map(entry).collect();
        if self.hooks.is_empty() {
            entries.push(self.hooks_entry());
        }
        entries.extend(self.hook_entries());
        entries
    }

    /// A key (`runners.preset`, `presets.mine.command`, `hooks`, `hooks.notify`) or a group (`runners`).
    pub fn get(&self, key: &str) -> Result<Lookup, ConfigError> {
        if key == "hooks" {
            return Ok(Lookup::Setting(self.hooks_entry()));
        }
        let all = || self.settings.iter().map(entry).chain(self.hook_entries());
        if let Some(entry) = all().find(|entry| entry.key == key) {
            return Ok(Lookup::Setting(entry));
        }
        let below = |entry: &Setting| entry.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        let entries: Vec<Setting> = all().filter(below).collect();
        let is_group = key == "presets" || matches!(keys::find(key), Some(KnownName::Group));
        if is_group && (key == "presets" || !entries.is_empty()) {
            return Ok(Lookup::Group { name: key.to_owned(), entries });
        }
        let names: Vec<String> = all().map(|entry| entry.key).collect();
        Err(ConfigError::UnknownKey {
            key: key.to_owned(),
            location: Location::Request,
            nearest: nearest(key, names.iter().map(String::as_str)),
        })
    }

    fn hooks_entry(&self) -> Setting {
        let value: Json = self.hooks.iter().map(super::Hook::to_json).collect();
        let origin = self.hook_origins.iter().max().cloned().unwrap_or(Origin::Default);
        Setting { key: "hooks".to_owned(), display: flow_json(&value), value, origin, about: hooks_about() }
    }

    fn hook_entries(&self) -> impl Iterator<Item = Setting> {
        self.hooks.iter().zip(&self.hook_origins).map(|(hook, origin)| {
            let value = hook.to_json();
            Setting {
                key: format!("hooks.{}", hook.name),
                display: flow_json(&value),
                value,
                origin: origin.clone(),
                about: hooks_about(),
            }
        })
    }
}

fn hooks_about() -> &'static str {
    KEYS.iter().find(|key| key.name == "hooks").map_or("", |key| key.about)
}

fn entry(setting: &Effective) -> Setting {
    let (mut value, mut display) = match &setting.value {
        Some(value) => (value.to_json(), value.to_string()),
        None => (Json::Null, String::new()),
    };
    if setting.key == "store.url" && setting.value.is_some() {
        display = masked(&display);
        value = Json::from(display.as_str());
    }
    Setting { key: setting.key.clone(), value, display, origin: setting.origin.clone(), about: setting.about }
}

/// Masks the password of a connection string, before the host or in a `password=` parameter. If the extent of the
/// password is ambiguous, masks more.
pub(super) fn masked(url: &str) -> String {
    let mut text = url.to_owned();
    if let Some(start) = text.find("://").map(|at| at + 3) {
        let user_end = text[start..].rfind('@').map(|at| start + at);
        let colon = text[start..].find(':').map(|at| start + at);
        if let (Some(colon), Some(at)) = (colon, user_end)
            && colon < at
        {
            text.replace_range(colon + 1..at, "****");
        }
    }
    let mut from = 0;
    while let Some(at) = text[from..].to_ascii_lowercase().find("password=") {
        let start = from + at + "password=".len();
        let value = &text[start..];
        let length = match value.strip_prefix('\'') {
            Some(quoted) => quoted.find('\'').map_or(value.len(), |end| end + 2),
            None => value.find(|c: char| c == '&' || c.is_whitespace()).unwrap_or(value.len()),
        };
        text.replace_range(start..start + length, "****");
        from = start + "****".len();
    }
    text
}

#[cfg(test)]
mod tests;
