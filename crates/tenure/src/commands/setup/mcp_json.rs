//! MCP servers of clients that configure them in JSON.

use serde_json::{Map, Value, json};

use super::NAME;
use super::file::FileChange;
use super::json_edit::{JsonDocument, Remaining, Step};
use super::mcp_entry::ServerEntry;

/// How a client writes the settings of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    /// With `type: stdio`.
    Stdio,
    /// With `type: local` and the tools that may be used: copilot.
    Local,
    /// With `type: local` and the arguments in `command`: opencode.
    OneCommand,
}

/// Adds our server to `group`, repairs it there, or removes it if `entry` is `None`.
pub(super) fn edit(
    text: &str,
    group: &str,
    entry: Option<&ServerEntry>,
    shape: Shape,
) -> Result<FileChange, String> {
    let Some(mut json) = parse(text)? else {
        let made = |wanted| JsonDocument::new(group, json!({NAME: server(wanted, shape)}));
        return Ok(entry.map_or(FileChange::Nothing, |wanted| FileChange::Write(made(wanted).into_text())));
    };
    let root = json.root();
    let servers = match root.get(group) {
        Some(found) => Some(found.as_object().ok_or_else(|| format!("{group} is not a JSON object"))?),
        None => None,
    };
    let found = servers.and_then(|servers| servers.get(NAME));
    match (entry, servers, found) {
        (Some(wanted), _, Some(found)) => {
            if entry_of(found).is_some_and(|found| found.serves(wanted)) {
                return Ok(FileChange::Nothing);
            }
            if !found.is_object() {
                return Err(format!("{NAME} is not a JSON object"));
            }
            for (key, value) in server(wanted, shape) {
                if found.get(&key) != Some(&value) {
                    json.set(&[Step::Key(group), Step::Key(NAME)], &key, &value);
                }
            }
        }
        (Some(wanted), Some(_), None) => {
            json.append(&[Step::Key(group)], Some(NAME), &server(wanted, shape).into());
        }
        (Some(wanted), None, _) => {
            json.append(&[], Some(group), &json!({NAME: server(wanted, shape)}));
        }
        (None, _, None) => return Ok(FileChange::Nothing),
        (None, _, Some(_)) => {
            if json.remove(&[Step::Key(group), Step::Key(NAME)]) == Remaining::Nothing {
                return Ok(FileChange::Delete);
            }
        }
    }
    Ok(FileChange::Write(json.into_text()))
}

pub(super) fn read(text: &str, group: &str) -> Result<Option<ServerEntry>, String> {
    let root = parse(text)?.map(|json| json.root()).unwrap_or_default();
    Ok(root.get(group).and_then(|servers| servers.get(NAME)).and_then(entry_of))
}

/// `None` for an empty file, which is treated like a missing one.
fn parse(text: &str) -> Result<Option<JsonDocument>, String> {
    if text.trim().is_empty() { Ok(None) } else { JsonDocument::parse(text).map(Some) }
}

/// The settings of our server.
fn server(wanted: &ServerEntry, shape: Shape) -> Map<String, Value> {
    let ServerEntry { command, args, .. } = wanted;
    let settings = match shape {
        Shape::Plain => json!({"command": command, "args": args}),
        Shape::Stdio => json!({"type": "stdio", "command": command, "args": args}),
        Shape::Local => json!({"type": "local", "command": command, "args": args, "tools": ["*"]}),
        Shape::OneCommand => {
            let words: Vec<&String> = std::iter::once(command).chain(args).collect();
            json!({"type": "local", "command": words})
        }
    };
    if let Value::Object(settings) = settings { settings } else { Map::new() }
}

fn entry_of(value: &Value) -> Option<ServerEntry> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let env = value.get("env").or_else(|| value.get("environment")).and_then(Value::as_object);
    let mut words = match value.get("command")? {
        Value::Array(words) => words.iter().filter_map(text).collect(),
        command => vec![text(command)?],
    };
    words.extend(value.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(text));
    let (command, args) = words.split_first()?;
    Some(ServerEntry {
        command: command.clone(),
        args: args.to_vec(),
        env: env.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> ServerEntry {
        ServerEntry { command: "tenure".into(), args: vec!["mcp".into()], env: Vec::new() }
    }

    fn put(text: &str) -> Option<String> {
        match edit(text, "mcpServers", Some(&ours()), Shape::Plain).unwrap() {
            FileChange::Write(text) => Some(text),
            change => {
                assert_eq!(change, FileChange::Nothing);
                None
            }
        }
    }

    #[test]
    fn an_entry_is_added_beside_everything_else_and_removed_again() {
        let before = "{\n    \"zebra\": 1,\n    \"mcpServers\": {\n        \"other\": {\n            \"command\": \"x\"\n        }\n    },\n    \"apple\": [\n        true\n    ]\n}\n";
        let after = put(before).unwrap();
        assert!(
            after.starts_with("{\n    \"zebra\": 1,\n    \"mcpServers\": {\n        \"other\""),
            "{after}"
        );
        assert_eq!(read(&after, "mcpServers").unwrap(), Some(ours()));
        assert_eq!(put(&after), None, "a second time changes nothing");
        assert_eq!(
            edit(&after, "mcpServers", None, Shape::Plain).unwrap(),
            FileChange::Write(before.to_owned())
        );
    }

    #[test]
    fn a_file_created_for_the_entry_is_deleted_with_it() {
        let made = put("").unwrap();
        assert_eq!(edit(&made, "mcpServers", None, Shape::Plain).unwrap(), FileChange::Delete);
        for before in ["{}", "{}\n", r#"{"mcpServers":{}}"#, r#"{"a": [1, 2]}"#, "// mine\n{}\n"] {
            assert_eq!(edit(before, "mcpServers", None, Shape::Plain).unwrap(), FileChange::Nothing);
            let after = put(before).unwrap();
            assert_eq!(
                edit(&after, "mcpServers", None, Shape::Plain).unwrap(),
                FileChange::Write(before.to_owned())
            );
        }
    }

    #[test]
    fn an_adapted_entry_stays_and_one_that_does_not_serve_is_repaired() {
        let own = r#"{"mcpServers":{"tenure":{"command":"/opt/tenure","args":["mcp","-C","/shop"],"env":{"A":"b"}}}}"#;
        assert_eq!(put(own), None);
        let wrong = r#"{"mcpServers":{"tenure":{"command":"false","env":{"A":"b"}}}}"#;
        let right = read(&put(wrong).unwrap(), "mcpServers").unwrap().unwrap();
        assert_eq!((right.command.as_str(), right.env), ("tenure", vec![("A".to_owned(), "b".to_owned())]));
        let commented = "{\n  \"mcpServers\": {\n    \"tenure\": {\n      // mine\n      \"command\": \"false\", // not yet\n      \"env\": {}\n    }\n  }\n}\n";
        let repaired = commented
            .replace("false", "tenure")
            .replace("{}\n", "{},\n      \"args\": [\n        \"mcp\"\n      ]\n");
        assert_eq!(put(commented), Some(repaired));
    }

    #[test]
    fn each_client_gets_its_own_shape_and_comments_stay() {
        let before = "{\n  // mine\n  \"mcp\": {}\n}\n";
        let ours = ours();
        let edit = |text: &str, entry| edit(text, "mcp", entry, Shape::OneCommand).unwrap();
        let FileChange::Write(after) = edit(before, Some(&ours)) else { panic!() };
        assert!(after.contains("// mine"), "{after}");
        assert_eq!(read(&after, "mcp").unwrap().as_ref(), Some(&ours));
        assert_eq!(edit(&after, Some(&ours)), FileChange::Nothing);
        assert_eq!(edit(&after, None), FileChange::Write(before.to_owned()));
        assert_eq!(server(&ours, Shape::OneCommand)["command"], json!(["tenure", "mcp"]));
        assert_eq!(server(&ours, Shape::Local)["tools"], json!(["*"]));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused() {
        for text in
            ["# mine\n{}", "// mine", "[]", "{", r#"{"mcpServers": 3}"#, r#"{"mcpServers": {"tenure": 3}}"#]
        {
            assert!(edit(text, "mcpServers", Some(&ours()), Shape::Plain).is_err(), "{text}");
        }
    }
}
