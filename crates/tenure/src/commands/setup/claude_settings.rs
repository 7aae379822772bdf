//! Our hooks in Claude Code's settings, among everybody else's.

use serde_json::{Map, Value, json};

use super::NAME;
use super::file::Change;
use super::json_text::{JsonText, Left, Step};
use crate::shell::quote;

pub(super) const FILE: &str = ".claude/settings.json";

/// An event of Claude Code's, what we call it, and after how many seconds it goes on without us.
struct Event {
    name: &'static str,
    word: &'static str,
    /// Said for each, because without it Claude Code gives the last one but 1.5 seconds, and the others minutes.
    timeout: u64,
}

const EVENTS: [Event; 3] = [
    Event { name: "SessionStart", word: "session-start", timeout: 10 },
    Event { name: "PostToolUse", word: "post-tool-use", timeout: 5 },
    Event { name: "SessionEnd", word: "session-end", timeout: 10 },
];

/// What one event runs. Whoever has the project and no tenure, or an old one, is not bothered by it.
fn command(program: &str, event: &Event) -> String {
    format!("{} claude-hook {} 2>/dev/null || true", quote(program), event.word)
}

pub(super) fn put(text: Option<&str>, program: &str) -> Result<Change, String> {
    let entry = |event: &Event| json!({"hooks": [{"type": "command", "command": command(program, event), "timeout": event.timeout}]});
    let Some(text) = text else {
        let all: Map<_, _> =
            EVENTS.iter().map(|event| (event.name.to_owned(), json!([entry(event)]))).collect();
        return Ok(Change::Write(JsonText::new("hooks", all.into()).into_text()));
    };
    let mut json = JsonText::parse(text)?;
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
    Ok(if json.text() == text { Change::Nothing } else { Change::Write(json.into_text()) })
}

/// Which command each event gets, for people.
pub(super) fn shown(program: &str) -> String {
    let lines = EVENTS.iter().map(|event| format!("{}: {}", event.name, command(program, event)));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn take_out(text: Option<&str>, program: &str) -> Result<Change, String> {
    let Some(text) = text else { return Ok(Change::Nothing) };
    let mut json = JsonText::parse(text)?;
    // From the last to the first, as they were put in, and so that no place moves before its turn.
    for event in EVENTS.iter().rev() {
        for (group, hook, alone) in ours(&json.root(), event, program)?.into_iter().rev() {
            let at = [
                Step::Key("hooks"),
                Step::Key(event.name),
                Step::Index(group),
                Step::Key("hooks"),
                Step::Index(hook),
            ];
            if json.cut(if alone { &at[..3] } else { &at }) == Left::Nothing {
                return Ok(Change::Delete);
            }
        }
    }
    Ok(if json.text() == text { Change::Nothing } else { Change::Write(json.into_text()) })
}

/// The events that have no hook of ours.
pub(super) fn missing(text: &str, program: &str) -> Result<Vec<&'static str>, String> {
    let root = JsonText::parse(text)?.root();
    Ok(missing_in(&root, program)?.into_iter().map(|event| event.name).collect())
}

/// Every event that is ours to hear.
pub(super) fn events() -> Vec<&'static str> {
    EVENTS.iter().map(|event| event.name).collect()
}

/// No hook of anybody's runs.
pub(super) fn are_off(text: &str) -> Result<bool, String> {
    Ok(JsonText::parse(text)?.root().get("disableAllHooks") == Some(&json!(true)))
}

fn missing_in(root: &Map<String, Value>, program: &str) -> Result<Vec<&'static Event>, String> {
    let mut found = Vec::new();
    for event in &EVENTS {
        if ours(root, event, program)?.is_empty() {
            found.push(event);
        }
    }
    Ok(found)
}

/// Which group, which hook in it, and whether it is alone there. A hook that its owner has adapted is still ours.
fn ours(
    root: &Map<String, Value>,
    event: &Event,
    program: &str,
) -> Result<Vec<(usize, usize, bool)>, String> {
    let Some(hooks) = root.get("hooks") else { return Ok(Vec::new()) };
    let hooks = hooks.as_object().ok_or("hooks is no JSON object")?;
    let Some(groups) = hooks.get(event.name) else { return Ok(Vec::new()) };
    let groups = groups.as_array().ok_or_else(|| format!("hooks.{} is no list", event.name))?;
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
        // All of a group go with it at once.
        found.extend(places.take(if alone { 1 } else { hooks.len() }).map(|(hook, _)| (group, hook, alone)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
