//! The settings of a project's file that need a person's trust, and the record of what a person has trusted.
//!
//! Guarantees: the content does not depend on how the file is written (comments, order, quoting, aliases, annotated
//! values); two contents are equal exactly if the same settings need trust, with the same values, and the files that they
//! name are the same. Passwords are never displayed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::document::Document;
use super::hook::{Hook, HookAction};
use super::keys::Authority;
use super::show::masked;
use super::value::Value;
use super::write::flow_json;
use crate::clock::Timestamp;

/// The settings of a project's file that need trust, and the project's files that they name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustContent {
    /// The value of each key. Objects are sorted.
    pub keys: BTreeMap<String, Json>,
    /// The SHA-256 of each file, by the name that a setting gives it. The caller reads the files.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl TrustContent {
    /// The content of a file, without the files that it names.
    pub fn of(document: &Document) -> Self {
        let keys = needing_trust(document).map(|(key, value)| (key.to_owned(), canonical(value.to_json())));
        Self { keys: keys.collect(), files: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The value of a file in [`TrustContent::files`].
    pub fn hash_file(mut file: impl Read) -> io::Result<String> {
        let (mut hash, mut buffer) = (Sha256::new(), [0; 16 * 1024]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(hexadecimal(&hash.finalize())),
                Ok(length) => hash.update(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A short form of the content: equal contents have equal hashes.
    pub fn hash(&self) -> String {
        let text = serde_json::json!({"files": self.files, "keys": self.keys}).to_string();
        sha256(text.as_bytes())
    }

    /// The differences from what was trusted before; everything, if nothing was.
    pub fn changes_since(&self, before: Option<&Self>) -> Vec<TrustChange> {
        let (before, after) = (before.map(Self::displayed).unwrap_or_default(), self.displayed());
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let change = |name: &String| TrustChange {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        };
        let mut changes: Vec<TrustChange> = names.into_iter().map(change).collect();
        // Settings first, then the files that they name.
        changes.sort_by_key(TrustChange::is_file);
        changes
    }

    /// Every setting and file as a person sees it. Each hook is a separate entry, and so is the order of several hooks.
    fn displayed(&self) -> BTreeMap<String, String> {
        let mut shown = BTreeMap::new();
        for (key, value) in &self.keys {
            match (key.as_str(), value) {
                ("hooks", Json::Array(hooks)) => {
                    let name = |hook: &Json| hook["name"].as_str().unwrap_or_default().to_owned();
                    if hooks.len() > 1 {
                        let order: Vec<String> = hooks.iter().map(name).collect();
                        shown.insert(key.clone(), order.join(", "));
                    }
                    shown.extend(hooks.iter().map(|hook| (format!("hooks.{}", name(hook)), flow_json(hook))));
                }
                ("store.url", Json::String(url)) => {
                    shown.insert(key.clone(), masked(url));
                }
                _ => {
                    shown.insert(key.clone(), flow_json(value));
                }
            }
        }
        shown.extend(self.files.iter().map(|(name, hash)| (format!("file {name}"), hash.clone())));
        shown
    }
}

/// A setting or a file that is new, gone, different or the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustChange {
    /// The key, `hooks.NAME`, or `file PATH`.
    pub name: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl TrustChange {
    pub fn is_file(&self) -> bool {
        self.name.starts_with("file ")
    }

    pub fn is_change(&self) -> bool {
        self.before != self.after
    }
}

/// What the settings that need trust would run, reach and use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrustSummary {
    /// Command lines of presets and hooks.
    pub commands: Vec<String>,
    /// Hosts of the store and of webhooks.
    pub hosts: Vec<String>,
    /// Environment variables that are sent or passed on to hooks, and those that are set for agents.
    pub variables: Vec<String>,
}

impl TrustSummary {
    pub fn of(document: &Document) -> Self {
        let (mut commands, mut hosts, mut variables) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (key, value) in needing_trust(document) {
            match value {
                Value::List(allowed) if key == "runners.allow" => commands.extend(allowed.iter().cloned()),
                Value::List(words) => commands.push(words.join(" ")),
                Value::Map(env) => {
                    variables.extend(env.keys().cloned());
                    variables.extend(env.values().flat_map(|text| variables_in(text)));
                }
                Value::Text(url) if key == "store.url" => hosts.extend(hosts_of(url)),
                Value::Hooks(hooks) => {
                    for hook in hooks {
                        let texts = texts_of(hook);
                        variables.extend(texts.iter().flat_map(|text| variables_in(text)));
                        match &hook.action {
                            HookAction::Script { .. } => commands.push(texts.join(" ")),
                            HookAction::Webhook { url, .. } => hosts.extend(hosts_of(url)),
                        }
                    }
                }
                _ => {}
            }
        }
        let sorted = |set: BTreeSet<String>| set.into_iter().collect();
        Self { commands, hosts: sorted(hosts), variables: sorted(variables) }
    }
}

/// What a person has trusted: a project's path, and the content of its file at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustRecord {
    /// Without symbolic links.
    pub path: String,
    pub trusted_at: Timestamp,
    #[serde(flatten)]
    pub content: TrustContent,
}

impl TrustRecord {
    /// The name of the file with the record of a project.
    pub fn file_name(path: &str) -> String {
        format!("{}.json", &sha256(path.as_bytes())[..32])
    }
}

/// How a project's file relates to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// The content is exactly what was trusted.
    Trusted,
    /// Another content was trusted.
    Changed,
    /// Nothing was trusted, and there are settings that need trust.
    Untrusted,
    /// Nothing was trusted, and no setting needs trust.
    Nothing,
}

impl TrustState {
    pub fn of(content: &TrustContent, record: Option<&TrustRecord>) -> Self {
        match record {
            Some(record) if record.content == *content => Self::Trusted,
            Some(_) => Self::Changed,
            None if content.is_empty() => Self::Nothing,
            None => Self::Untrusted,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Changed => "changed",
            Self::Untrusted => "untrusted",
            Self::Nothing => "nothing",
        }
    }
}

impl Document {
    /// The words in settings that need trust which may name a file of the project: programs with a slash, arguments,
    /// values of variables and the prompt template, each as a whole and in parts. A program without a slash is searched
    /// on `PATH`.
    pub fn words_that_may_name_files(&self) -> BTreeSet<String> {
        // `--config=ci/a.json`, `sh -c './ci/x.sh; ./ci/y.sh'`, `BASH_ENV=…`
        let separates = |c: char| c.is_whitespace() || "=;|&()<>\"',:@".contains(c);
        let mut words = BTreeSet::new();
        let mut command = |program: &str, args: &[String]| {
            if program.contains('/') {
                words.insert(program.to_owned());
            }
            for arg in args {
                words.insert(arg.clone());
                words.extend(arg.split(separates).map(str::to_owned));
            }
        };
        for (key, value) in needing_trust(self) {
            match value {
                Value::List(allowed) if key == "runners.allow" => command("", allowed),
                Value::List(list) => {
                    if let Some((program, args)) = list.split_first() {
                        command(program, args);
                    }
                }
                Value::Hooks(hooks) => {
                    for hook in hooks {
                        if let HookAction::Script { command: program, args } = &hook.action {
                            command(program, args);
                        }
                    }
                }
                Value::Map(env) => command("", &env.values().cloned().collect::<Vec<_>>()),
                Value::Text(text) if key == "runners.promptTemplate" => {
                    command("", std::slice::from_ref(text));
                }
                _ => {}
            }
        }
        words.remove("");
        words
    }
}

fn needing_trust(document: &Document) -> impl Iterator<Item = (&str, &Value)> {
    let needs_trust = |authority| authority == Authority::NeedsTrust;
    let settings = document.settings.iter().filter(move |setting| needs_trust(setting.authority));
    settings.map(|setting| (setting.key.as_str(), &setting.value))
}

/// Sorts the entries of every object.
fn canonical(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(canonical).collect(),
        Json::Object(entries) => {
            let sorted: BTreeMap<String, Json> =
                entries.into_iter().map(|(key, value)| (key, canonical(value))).collect();
            sorted.into_iter().collect()
        }
        other => other,
    }
}

fn texts_of(hook: &Hook) -> Vec<&str> {
    match &hook.action {
        HookAction::Script { command, args } => {
            std::iter::once(command).chain(args).map(String::as_str).collect()
        }
        HookAction::Webhook { url, headers, body, .. } => {
            std::iter::once(url).chain(headers.values()).chain(body).map(String::as_str).collect()
        }
    }
}

/// The names in `${NAME}`.
fn variables_in(text: &str) -> impl Iterator<Item = String> {
    text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned())
}

/// The hosts that a URL leads to, without user and password; the masked text if it is not a URL. None for the project's
/// own file. A host is taken only from where the client would take it, so that no URL can disguise its host.
fn hosts_of(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return if url.starts_with("sqlite:") { Vec::new() } else { vec![masked(url)] };
    };
    let until = |text: &str, ends: &[char]| text.split(ends).next().unwrap_or_default().to_owned();
    if !scheme.starts_with("postgres") {
        let authority = until(rest, &['/', '?', '#', '\\']);
        return vec![authority.rsplit_once('@').map_or(authority.clone(), |(_, host)| host.to_owned())];
    }
    // The client reads credentials up to the first `@`, and further hosts from the parameters.
    let after_user = rest.split_once('@').map_or(rest, |(_, host)| host);
    let parameters = after_user.split_once('?').map_or("", |(_, parameters)| parameters).split('&');
    let named = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        ["host", "hostaddr"].contains(&name).then(|| value.to_owned())
    });
    std::iter::once(until(after_user, &['/', '?'])).chain(named).filter(|host| !host.is_empty()).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
