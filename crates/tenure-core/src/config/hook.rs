//! Hooks: a script or webhook to call on an event. Only the structure is checked here; `${VARIABLES}` and
//! `{{placeholders}}` stay unexpanded until the hook runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::{ConfigError, Location};
use super::hook_event::HookEvent;
use super::keys::{HOOK_FIELDS, Kind};
use super::nearest::nearest;
use super::value::{Value, bad};
use super::wrapper::NOTES;
use crate::duration::format_short;
use crate::yaml::{Content, Node};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
/// Twenty retries with their delays already take about ten minutes.
const MAX_RETRY: u32 = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Unique; a hook of the project replaces the user's hook of the same name.
    pub name: String,
    pub event: HookEvent,
    pub action: HookAction,
    /// The timeout of each try.
    pub timeout: Duration,
    /// Whether the command continues without waiting for the hook.
    pub run_async: bool,
    /// The number of retries.
    pub retry: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum HookAction {
    Script {
        command: String,
        args: Vec<String>,
    },
    Webhook {
        url: String,
        method: String,
        headers: BTreeMap<String, String>,
        /// The event as JSON if not given.
        body: Option<String>,
    },
}

impl HookAction {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Script { .. } => "script",
            Self::Webhook { .. } => "webhook",
        }
    }
}

impl Hook {
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = json!({"name": self.name, "event": self.event.as_str()});
        let details = match &self.action {
            HookAction::Script { command, args } => {
                json!({"type": "script", "command": command, "args": args})
            }
            HookAction::Webhook { url, method, headers, body: None } => {
                json!({"type": "webhook", "url": url, "method": method, "headers": headers})
            }
            HookAction::Webhook { url, method, headers, body } => {
                json!({"type": "webhook", "url": url, "method": method, "headers": headers, "body": body})
            }
        };
        let rest =
            json!({"timeout": format_short(self.timeout), "async": self.run_async, "retry": self.retry});
        for part in [details, rest] {
            if let (Some(value), serde_json::Value::Object(part)) = (value.as_object_mut(), part) {
                value.extend(part);
            }
        }
        value
    }
}

pub(super) fn read_all(items: &[Node<'_>]) -> Result<Vec<Hook>, ConfigError> {
    let mut hooks: Vec<Hook> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let hook = Fields { path: format!("hooks[{index}]"), node: item }.read()?;
        if hooks.iter().any(|earlier| earlier.name == hook.name) {
            return Err(bad(
                &format!("hooks[{index}].name"),
                "a name that no other hook in this file has",
                item,
            ));
        }
        hooks.push(hook);
    }
    Ok(hooks)
}

struct Fields<'n, 'a> {
    path: String,
    node: &'n Node<'a>,
}

impl Fields<'_, '_> {
    fn read(&self) -> Result<Hook, ConfigError> {
        self.check_names()?;
        let action = match self.word("type")?.as_deref() {
            Some("script") => {
                self.refuse(&["url", "method", "headers", "body"], "only for webhooks")?;
                let args = match self.value("args", Kind::List)? {
                    Some(Value::List(args)) => args,
                    _ => Vec::new(),
                };
                HookAction::Script { command: self.required("command")?, args }
            }
            Some("webhook") => {
                self.refuse(&["command", "args"], "only for scripts")?;
                let method = self.word("method")?.unwrap_or_else(|| "POST".to_owned());
                if method.is_empty() || !method.chars().all(|c| c.is_ascii_uppercase()) {
                    return Err(self.wrong("method", "an HTTP method such as POST"));
                }
                let headers = match self.value("headers", Kind::Map)? {
                    Some(Value::Map(headers)) => headers,
                    _ => BTreeMap::new(),
                };
                HookAction::Webhook { url: self.required("url")?, method, headers, body: self.word("body")? }
            }
            _ => return Err(self.wrong("type", "script or webhook")),
        };
        Ok(Hook {
            name: self.required("name")?,
            event: self.event()?,
            action,
            timeout: match self.value("timeout", Kind::Duration)? {
                Some(Value::Duration(_, timeout)) => timeout,
                _ => DEFAULT_TIMEOUT,
            },
            run_async: matches!(self.value("async", Kind::Flag)?, Some(Value::Flag(true))),
            retry: self.retry()?,
        })
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        let Content::Map { entries, .. } = &self.node.content else {
            return Err(bad(
                &self.path,
                "a hook such as {name: notify, event: task.completed, …}",
                self.node,
            ));
        };
        let unknown = entries
            .iter()
            .find(|entry| !HOOK_FIELDS.contains(&entry.key.as_ref()) && !NOTES.contains(&entry.key.as_ref()));
        unknown.map_or(Ok(()), |entry| {
            let key = format!("{}.{}", self.path, entry.key);
            Err(ConfigError::UnknownKey {
                nearest: nearest(&key, []),
                key,
                location: Location::File(entry.key_at),
            })
        })
    }

    fn value(&self, field: &str, kind: Kind) -> Result<Option<Value>, ConfigError> {
        let Some(entry) = self.node.entry(field) else { return Ok(None) };
        Value::from_node(kind, &format!("{}.{field}", self.path), &entry.value)
    }

    fn word(&self, field: &str) -> Result<Option<String>, ConfigError> {
        Ok(match self.value(field, Kind::Text)? {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        })
    }

    fn required(&self, field: &str) -> Result<String, ConfigError> {
        self.word(field)?.filter(|text| !text.is_empty()).ok_or_else(|| self.wrong(field, "given"))
    }

    fn event(&self) -> Result<HookEvent, ConfigError> {
        let text = self.required("event")?;
        HookEvent::parse(&text).ok_or_else(|| {
            let meant = HookEvent::nearest(&text).map(|event| format!(" (did you mean {event}?)"));
            self.wrong("event", &format!("one of {}{}", HookEvent::list(), meant.unwrap_or_default()))
        })
    }

    /// Unlike other counts, the number of retries may be zero.
    fn retry(&self) -> Result<u32, ConfigError> {
        match self.word("retry")? {
            None => Ok(0),
            Some(text) => match text.parse() {
                Ok(number) if number <= MAX_RETRY => Ok(number),
                _ => Err(self.wrong("retry", "a whole number from 0 to 20")),
            },
        }
    }

    fn refuse(&self, fields: &[&str], why: &str) -> Result<(), ConfigError> {
        let given = fields.iter().find(|field| self.node.entry(field).is_some());
        given.map_or(Ok(()), |field| Err(self.wrong(field, &format!("left out ({why})"))))
    }

    fn wrong(&self, field: &str, expected: &str) -> ConfigError {
        let key = format!("{}.{field}", self.path);
        match self.node.entry(field) {
            Some(entry) => bad(&key, expected, &entry.value),
            None => ConfigError::BadValue {
                key,
                location: Location::File(self.node.at),
                expected: expected.to_owned(),
                got: "missing".to_owned(),
            },
        }
    }
}
