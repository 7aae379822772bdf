//! Our hooks in Claude Code's settings, next to the hooks of other tools.

use serde_json::{Map, Value, json};

use super::NAME;
use super::file::FileChange;
use super::json_edit::{JsonDocument, Remaining, Step};
use crate::shell_quote::quote;

pub(super) const FILE: &str = ".claude/settings.json";

/// An event of Claude Code that runs `tenure claude-hook`.
struct HookedEvent {
    name: &'static str,
    /// The argument of `tenure claude-hook`.
    word: &'static str,
    /// In seconds. Set for each event, because Claude Code's default is 1.5 seconds for SessionEnd and minutes for the
    /// others.
    timeout: u64,
}

const EVENTS: [HookedEvent; 4] = [
    HookedEvent { name: "SessionStart", word: "session-start", timeout: 10 },
    HookedEvent { name: "PostToolUse", word: "post-tool-use", timeout: 5 },
    // A tool call that fails does not run the hooks of PostToolUse.
    HookedEvent { name: "PostToolUseFailure", word: "post-tool-use", timeout: 5 },
    HookedEvent { name: "SessionEnd", word: "session-end", timeout: 10 },
];

/// The shell command of one event. It succeeds silently if tenure is missing or too old to have this command, because
/// the settings file may be committed and used on machines without tenure.
fn command(program: &str, event: &HookedEvent) -> String {
    format!("{} claude-hook {} 2>/dev/null || true", quote(program), event.word)
}

pub(super) fn put(text: Option<&str>, program: &str) -> Result<FileChange, String> {
    let entry = |event: &HookedEvent| json!({"hooks": [{"type": "command", "command": command(program, event), "timeout": event.timeout}]});
    let Some(text) = text else {
        let all: Map<_, _> =
            EVENTS.iter().map(|event| (event.name.to_owned(), json!([entry(event)]))).collect();
        return Ok(FileChange::Write(JsonDocument::new("hooks", all.into()).into_text()));
    };
    let mut json = JsonDocument::parse(text)?;
    for event in missing_in(&json.root(), program)? {
        let root = json.root();
        match root.get("hooks") {
            None => json.append(&[], Some("hooks"), &json!({event.name: [entry(event)]})),
            Some(hooks) if hooks.get(event.name).is_none() => {
                json.append(&[Step::Key("hooks")], Some(event.name), &json!([entry(event)]));
            }
            Some(_) => json.append(&[Step::Key("hooks"), Step::Key(event.name)], None, &entry(event)),
        }
    }
    Ok(if json.text() == text { FileChange::Nothing } else { FileChange::Write(json.into_text()) })
}

/// The command of each event, one per line, for display.
pub(super) fn shown(program: &str) -> String {
    let lines = EVENTS.iter().map(|event| format!("{}: {}", event.name, command(program, event)));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn take_out(text: Option<&str>, program: &str) -> Result<FileChange, String> {
    let Some(text) = text else { return Ok(FileChange::Nothing) };
    let mut json = JsonDocument::parse(text)?;
    // Last to first, so that no removal shifts the index of a hook that is still to be removed.
    for event in EVENTS.iter().rev() {
        for (group, hook, alone) in ours(&json.root(), event, program)?.into_iter().rev() {
            let at = [
                Step::Key("hooks"),
                Step::Key(event.name),
                Step::Index(group),
                Step::Key("hooks"),
                Step::Index(hook),
            ];
            if json.remove(if alone { &at[..3] } else { &at }) == Remaining::Nothing {
                return Ok(FileChange::Delete);
            }
        }
    }
    Ok(if json.text() == text { FileChange::Nothing } else { FileChange::Write(json.into_text()) })
}

/// The events without a hook of ours.
pub(super) fn missing(text: &str, program: &str) -> Result<Vec<&'static str>, String> {
    let root = JsonDocument::parse(text)?.root();
    Ok(missing_in(&root, program)?.into_iter().map(|event| event.name).collect())
}

/// All events that get a hook.
pub(super) fn events() -> Vec<&'static str> {
    EVENTS.iter().map(|event| event.name).collect()
}

/// Whether the settings disable all hooks.
pub(super) fn are_off(text: &str) -> Result<bool, String> {
    Ok(JsonDocument::parse(text)?.root().get("disableAllHooks") == Some(&json!(true)))
}

fn missing_in(root: &Map<String, Value>, program: &str) -> Result<Vec<&'static HookedEvent>, String> {
    let mut found = Vec::new();
    for event in &EVENTS {
        if ours(root, event, program)?.is_empty() {
            found.push(event);
        }
    }
    Ok(found)
}

/// Our hooks of an event: the index of the group, the index in the group, and whether the group has only ours. A hook
/// counts as ours even if its owner has adapted the command.
fn ours(
    root: &Map<String, Value>,
    event: &HookedEvent,
    program: &str,
) -> Result<Vec<(usize, usize, bool)>, String> {
    let Some(hooks) = root.get("hooks") else { return Ok(Vec::new()) };
    let hooks = hooks.as_object().ok_or("hooks is not a JSON object")?;
    let Some(groups) = hooks.get(event.name) else { return Ok(Vec::new()) };
    let groups = groups.as_array().ok_or_else(|| format!("hooks.{} is not a list", event.name))?;
    let call = format!("claude-hook {}", event.word);
    let calls = |hook: &Value| {
        let line = hook.get("command").and_then(Value::as_str).unwrap_or_default();
        line.contains(&call) && (line.contains(NAME) || line.contains(program))
    };
    let mut found = Vec::new();
    for (group, entry) in groups.iter().enumerate() {
        let hooks = entry.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let alone = hooks.iter().all(calls);
        let places = hooks.iter().enumerate().filter(|(_, hook)| calls(hook));
        // A group that has only our hooks is removed whole, so it is listed once.
        found.extend(places.take(if alone { 1 } else { hooks.len() }).map(|(hook, _)| (group, hook, alone)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
