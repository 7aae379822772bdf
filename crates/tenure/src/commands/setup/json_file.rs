//! Clients that keep their servers in JSON: everything else stays as it is, in its order and with its indentation.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use super::entry::{Entry, NAME};

pub(super) fn edit(
    text: &str,
    group: &str,
    entry: Option<&Entry>,
    typed: bool,
) -> Result<Option<String>, String> {
    let mut root = parse(text)?;
    match entry {
        Some(wanted) => {
            let servers = object(root.entry(group).or_insert_with(|| json!({})), group)?;
            if servers.get(NAME).and_then(entry_of).is_some_and(|found| found.serves(wanted)) {
                return Ok(None);
            }
            let server = object(servers.entry(NAME).or_insert_with(|| json!({})), NAME)?;
            if typed {
                server.insert("type".to_owned(), json!("stdio"));
            }
            server.insert("command".to_owned(), json!(wanted.command));
            server.insert("args".to_owned(), json!(wanted.args));
        }
        None => {
            let Some(servers) = root.get_mut(group).and_then(Value::as_object_mut) else { return Ok(None) };
            if servers.shift_remove(NAME).is_none() {
                return Ok(None);
            }
            if servers.is_empty() {
                root.shift_remove(group);
            }
            if root.is_empty() {
                return Ok(Some(String::new()));
            }
        }
    }
    written(&root, text).map(Some)
}

pub(super) fn read(text: &str, group: &str) -> Result<Option<Entry>, String> {
    let root = parse(text)?;
    Ok(root.get(group).and_then(|servers| servers.get(NAME)).and_then(entry_of))
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("this is no JSON object".to_owned()),
        // Comments are allowed by some clients, and would be lost.
        Err(e) => Err(format!("this is not plain JSON: {e}")),
    }
}

fn object<'v>(value: &'v mut Value, name: &str) -> Result<&'v mut Map<String, Value>, String> {
    value.as_object_mut().ok_or_else(|| format!("{name} is no JSON object"))
}

fn entry_of(value: &Value) -> Option<Entry> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let env = value.get("env").and_then(Value::as_object);
    Some(Entry {
        command: value.get("command").and_then(text)?,
        args: value.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(text).collect(),
        env: env.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect(),
    })
}

fn written(root: &Map<String, Value>, before: &str) -> Result<String, String> {
    // As the first line that is indented.
    let indent = before.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        (rest.len() < line.len() && !rest.is_empty()).then(|| &line[..line.len() - rest.len()])
    });
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.unwrap_or("  ").as_bytes());
    root.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))
        .map_err(|e| e.to_string())?;
    let mut text = String::from_utf8(bytes).map_err(|e| e.to_string())?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Entry {
        Entry { command: "tenure".into(), args: vec!["mcp".into()], env: Vec::new() }
    }

    fn put(text: &str) -> Option<String> {
        edit(text, "mcpServers", Some(&ours()), false).unwrap()
    }

    #[test]
    fn an_entry_is_put_beside_everything_else_and_taken_out_again() {
        let before = "{\n    \"zebra\": 1,\n    \"mcpServers\": {\n        \"other\": {\n            \"command\": \"x\"\n        }\n    },\n    \"apple\": [\n        true\n    ]\n}\n";
        let after = put(before).unwrap();
        assert!(
            after.starts_with("{\n    \"zebra\": 1,\n    \"mcpServers\": {\n        \"other\""),
            "{after}"
        );
        assert_eq!(read(&after, "mcpServers").unwrap(), Some(ours()));
        assert_eq!(put(&after), None, "a second time changes nothing");
        assert_eq!(edit(&after, "mcpServers", None, false).unwrap().as_deref(), Some(before));
    }

    #[test]
    fn a_file_of_our_own_goes_as_it_came() {
        let made = put("").unwrap();
        assert_eq!(edit(&made, "mcpServers", None, false).unwrap().as_deref(), Some(""));
        assert_eq!(edit("{}", "mcpServers", None, false).unwrap(), None);
    }

    #[test]
    fn what_its_owner_has_changed_stays_and_what_does_not_serve_is_put_right() {
        let own = r#"{"mcpServers":{"tenure":{"command":"/opt/tenure","args":["mcp","-C","/shop"],"env":{"A":"b"}}}}"#;
        assert_eq!(put(own), None);
        let wrong = r#"{"mcpServers":{"tenure":{"command":"false","env":{"A":"b"}}}}"#;
        let right = read(&put(wrong).unwrap(), "mcpServers").unwrap().unwrap();
        assert_eq!((right.command.as_str(), right.env), ("tenure", vec![("A".to_owned(), "b".to_owned())]));
    }

    #[test]
    fn what_cannot_be_kept_is_not_touched() {
        for text in ["// mine\n{}", "[]", "{", r#"{"mcpServers": 3}"#] {
            assert!(edit(text, "mcpServers", Some(&ours()), false).is_err(), "{text}");
        }
    }
}
