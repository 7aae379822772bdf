//! Merges the layers into one configuration. Precedence: flags, environment, project file, user file, defaults.
//! Settings that a project file may not decide, or decides without being trusted, are left out and listed in
//! [`Config::ignored`].
//! Guarantees that every value has the type of its key and that the rules between keys hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::document::{Document, DocumentSetting};
use super::error::{Cause, ConfigError, Location};
use super::hook::Hook;
use super::keys::{self, Authority, KEYS, Key, Kind, KnownName};
use super::nearest::nearest;
use super::origin::Origin;
use super::types::{
    Config, IgnoredSetting, Locking, Mcp, Permissions, Preset, Project, Review, Runners, Tasks, Wakeup,
};
use super::value::Value;

/// The value of `store.url` that means the project's own database file, as if the key were not set.
const PROJECT_FILE: &str = "sqlite:";

/// The inputs of the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layers<'a> {
    pub flags: &'a [Override<'a>],
    pub environment: &'a [Override<'a>],
    pub project: Option<Layer<'a>>,
    /// Whether a person has trusted the project's file. If not, its settings that need trust do not count.
    pub trusts_project: bool,
    pub user: Option<Layer<'a>>,
}

/// One file: its settings, and its name for messages.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    pub path: &'a str,
    pub document: &'a Document,
}

/// A key given on the command line or in the environment; `label` is the flag or the variable.
#[derive(Debug, Clone, Copy)]
pub struct Override<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub label: &'a str,
}

/// The effective value of a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effective {
    pub(super) key: String,
    pub(super) about: &'static str,
    pub(super) value: Option<Value>,
    pub(super) origin: Origin,
}

impl Config {
    pub fn resolve(layers: Layers<'_>) -> Result<Self, ConfigError> {
        let stack = Stack::new(layers)?;
        let mut settings = Vec::with_capacity(KEYS.len());
        for key in KEYS {
            if key.kind == Kind::Hooks {
                continue;
            }
            match key.name.split_once('*') {
                None => settings.push(stack.effective(key, key.name.to_owned())?),
                Some((before, after)) => {
                    for name in stack.names(before, after) {
                        settings.push(stack.effective(key, name)?);
                    }
                }
            }
        }
        let settings = Settings(settings);
        settings.check_timeouts()?;
        Ok(Self {
            project: Project {
                id: settings.text("project.id").and_then(|id| uuid::Uuid::try_parse(&id).ok()),
                name: settings.text("project.name"),
            },
            store_url: settings.text("store.url").filter(|url| url != PROJECT_FILE),
            max_listeners: settings.count("store.maxListeners")?,
            retention: Some(settings.duration("store.retention")?).filter(|keep| !keep.is_zero()),
            locking: Locking {
                task_timeout: settings.duration("locking.taskTimeout")?,
                section_timeout: settings.duration("locking.sectionTimeout")?,
                lease_ttl: settings.duration("locking.leaseTtl")?,
                wait_timeout: settings.duration("locking.waitTimeout")?,
                poll_interval: settings.duration("locking.pollInterval")?,
            },
            tasks: Tasks {
                max_attempts: settings.count("tasks.maxAttempts")?,
                max_rejections: settings.count("tasks.maxRejections")?,
            },
            review: Review {
                enabled: settings.flag("review.enabled")?,
                preset: settings.text("review.preset"),
            },
            runners: Runners {
                preset: settings.text("runners.preset").unwrap_or_default(),
                require_report: match settings.value("runners.requireReport") {
                    Some(Value::Flag(required)) => Some(*required),
                    _ => None,
                },
                permissions: settings
                    .text("runners.permissions")
                    .and_then(|text| Permissions::parse(&text))
                    .unwrap_or_default(),
                allow: settings.list("runners.allow"),
                prompt_template: settings.text("runners.promptTemplate"),
                heartbeat_interval: settings.duration("runners.heartbeatInterval")?,
                stale_timeout: settings.duration("runners.staleTimeout")?,
                subprocess_hang_timeout: settings.duration("runners.subprocessHangTimeout")?,
                agent_timeout: settings.duration("runners.agentTimeout")?,
                kill_grace: settings.duration("runners.killGrace")?,
                max_concurrent: settings.count("runners.maxConcurrent")?,
                idle_timeout: settings.duration("runners.idleTimeout")?,
                log_retention: settings.duration("runners.logRetention")?,
                log_total: settings.size("runners.logTotal")?,
                wakeup: Wakeup {
                    enabled: settings.flag("runners.wakeup.enabled")?,
                    check_interval: settings.duration("runners.wakeup.checkInterval")?,
                    project_paths: settings.list("runners.wakeup.projectPaths"),
                },
            },
            mcp: Mcp { release_on_disconnect: settings.flag("mcp.releaseOnDisconnect")? },
            presets: settings.presets(),
            hooks: stack.hooks.iter().map(|(hook, _)| hook.clone()).collect(),
            ignored: stack.ignored,
            ignored_hooks: stack.ignored_hooks,
            hook_origins: stack.hooks.into_iter().map(|(_, origin)| origin).collect(),
            settings: settings.0,
        })
    }
}

/// All given values, lowest layer first.
struct Stack {
    given: Vec<(String, Value, Origin)>,
    hooks: Vec<(Hook, Origin)>,
    /// Settings of the project's file that do not count.
    ignored: Vec<IgnoredSetting>,
    ignored_hooks: Vec<Hook>,
}

impl Stack {
    fn new(layers: Layers<'_>) -> Result<Self, ConfigError> {
        let mut stack =
            Self { given: Vec::new(), hooks: Vec::new(), ignored: Vec::new(), ignored_hooks: Vec::new() };
        for (layer, is_project) in [(layers.user, false), (layers.project, true)] {
            let Some(layer) = layer else { continue };
            for setting in &layer.document.settings {
                let counts = match setting.authority {
                    Authority::Harmless => true,
                    Authority::NeedsTrust => !is_project || layers.trusts_project,
                    Authority::UserOnly => !is_project,
                };
                if !counts {
                    stack.ignore(setting);
                    continue;
                }
                let (path, line) = (layer.path.to_owned(), setting.at.line);
                let origin =
                    if is_project { Origin::Project { path, line } } else { Origin::User { path, line } };
                stack.push(setting.key.clone(), setting.value.clone(), origin);
            }
        }
        for (overrides, is_flag) in [(layers.environment, false), (layers.flags, true)] {
            for given in overrides {
                let label = given.label.to_owned();
                let (location, origin) = if is_flag {
                    (Location::Flag { flag: label.clone() }, Origin::Flag { flag: label })
                } else {
                    (
                        Location::Environment { variable: label.clone() },
                        Origin::Environment { variable: label },
                    )
                };
                let Some(KnownName::Key(key)) = keys::find(given.key) else {
                    let key = given.key.to_owned();
                    return Err(ConfigError::UnknownKey { nearest: nearest(&key, []), key, location });
                };
                let value = Value::from_text(key.kind, given.key, given.value, &location)?;
                stack.push(given.key.to_owned(), value, origin);
            }
        }
        Ok(stack)
    }

    fn ignore(&mut self, setting: &DocumentSetting) {
        if let Value::Hooks(hooks) = &setting.value {
            self.ignored_hooks.clone_from(hooks);
        }
        self.ignored.push(IgnoredSetting { key: setting.key.clone(), authority: setting.authority });
    }

    fn push(&mut self, key: String, value: Value, origin: Origin) {
        let Value::Hooks(hooks) = value else {
            self.given.push((key, value, origin));
            return;
        };
        for hook in hooks {
            match self.hooks.iter_mut().find(|(earlier, _)| earlier.name == hook.name) {
                Some(earlier) => *earlier = (hook, origin.clone()),
                None => self.hooks.push((hook, origin.clone())),
            }
        }
    }

    fn effective(&self, key: &Key, name: String) -> Result<Effective, ConfigError> {
        let given = self.given.iter().rev().find(|(given, ..)| *given == name);
        let (value, origin) = match (given, key.default) {
            (Some((_, value, origin)), _) => (Some(value.clone()), origin.clone()),
            (None, Some(default)) => {
                (Some(Value::from_text(key.kind, key.name, default, &Location::Request)?), Origin::Default)
            }
            (None, None) => (None, Origin::Default),
        };
        Ok(Effective { key: name, about: key.about, value, origin })
    }

    /// The names under which a key with a `*` was given.
    fn names(&self, before: &str, after: &str) -> BTreeSet<String> {
        let given = self.given.iter().map(|(key, ..)| key);
        given.filter(|key| key.starts_with(before) && key.ends_with(after)).cloned().collect()
    }
}

struct Settings(Vec<Effective>);

impl Settings {
    fn find(&self, key: &str) -> Option<&Effective> {
        self.0.iter().find(|setting| setting.key == key)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.find(key)?.value.as_ref()
    }

    /// A lookup of a key that the table lacks or has with another type. Only a mistake in this file causes it; a test
    /// covers every key.
    fn mismatch(key: &str) -> ConfigError {
        ConfigError::UnknownKey {
            key: key.to_owned(),
            location: Location::Request,
            nearest: nearest(key, []),
        }
    }

    fn duration(&self, key: &str) -> Result<Duration, ConfigError> {
        match self.value(key) {
            Some(Value::Duration(_, duration)) => Ok(*duration),
            _ => Err(Self::mismatch(key)),
        }
    }

    fn count(&self, key: &str) -> Result<u32, ConfigError> {
        match self.value(key) {
            Some(Value::Count(count)) => Ok(*count),
            _ => Err(Self::mismatch(key)),
        }
    }

    fn size(&self, key: &str) -> Result<u64, ConfigError> {
        match self.value(key) {
            Some(Value::Size(_, bytes)) => Ok(*bytes),
            _ => Err(Self::mismatch(key)),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match self.value(key) {
            Some(Value::Flag(flag)) => Ok(*flag),
            _ => Err(Self::mismatch(key)),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::List(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn presets(&self) -> BTreeMap<String, Preset> {
        let mut presets: BTreeMap<String, Preset> = BTreeMap::new();
        for setting in &self.0 {
            let Some((name, _)) = setting.key.strip_prefix("presets.").and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let preset = presets.entry(name.to_owned()).or_default();
            match &setting.value {
                Some(Value::List(command)) => preset.command.clone_from(command),
                Some(Value::Map(env)) => preset.env.clone_from(env),
                Some(Value::Text(account)) => preset.account = Some(account.clone()),
                _ => {}
            }
        }
        presets
    }

    /// Heartbeats must be more frequent than the stale timeout, or a live runner would look stale. The stale timeout
    /// must be shorter than the leases, or a stale runner would be detected only after they expired.
    fn check_timeouts(&self) -> Result<(), ConfigError> {
        let [beat, stale, task] =
            ["runners.heartbeatInterval", "runners.staleTimeout", "locking.taskTimeout"];
        let beats = self.duration(beat)?.saturating_mul(3);
        if beats <= self.duration(stale)? && self.duration(stale)? <= self.duration(task)? {
            return Ok(());
        }
        let cause = |key: &&str| {
            let setting = self.find(key)?;
            let value = setting.value.as_ref()?.to_string();
            Some(Cause { key: setting.key.clone(), value, origin: setting.origin.clone() })
        };
        Err(ConfigError::Conflict {
            rule: format!("3 × {beat} ≤ {stale} ≤ {task}"),
            causes: [beat, stale, task].iter().filter_map(cause).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
