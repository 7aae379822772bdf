//! Clients that keep their servers in JSON.

use serde_json::{Map, Value, json};

use super::NAME;
use super::file::Change;
use super::json_text::{JsonText, Left, Step};
use super::mcp_entry::Entry;

pub(super) fn edit(text: &str, group: &str, entry: Option<&Entry>, typed: bool) -> Result<Change, String> {
    let Some(mut json) = parse(text)? else {
        let made = |wanted| JsonText::new(group, json!({NAME: server(Map::new(), wanted, typed)}));
        return Ok(entry.map_or(Change::Nothing, |wanted| Change::Write(made(wanted).into_text())));
    };
    let root = json.root();
    let servers = match root.get(group) {
        Some(found) => Some(found.as_object().ok_or_else(|| format!("{group} is no JSON object"))?),
        None => None,
    };
    let found = servers.and_then(|servers| servers.get(NAME));
    match (entry, servers, found) {
        (Some(wanted), _, Some(found)) => {
            if entry_of(found).is_some_and(|found| found.serves(wanted)) {
                return Ok(Change::Nothing);
            }
            let there = found.as_object().ok_or_else(|| format!("{NAME} is no JSON object"))?;
            json.replace(&[Step::Key(group), Step::Key(NAME)], &server(there.clone(), wanted, typed));
        }
        (Some(wanted), Some(_), None) => {
            json.append(&[Step::Key(group)], Some(NAME), &server(Map::new(), wanted, typed));
        }
        (Some(wanted), None, _) => {
            json.append(&[], Some(group), &json!({NAME: server(Map::new(), wanted, typed)}));
        }
        (None, _, None) => return Ok(Change::Nothing),
        (None, _, Some(_)) => {
            if json.cut(&[Step::Key(group), Step::Key(NAME)]) == Left::Nothing {
                return Ok(Change::Delete);
            }
        }
    }
    Ok(Change::Write(json.into_text()))
}

pub(super) fn read(text: &str, group: &str) -> Result<Option<Entry>, String> {
    let root = parse(text)?.map(|json| json.root()).unwrap_or_default();
    Ok(root.get(group).and_then(|servers| servers.get(NAME)).and_then(entry_of))
}

/// A file with nothing in it is as good as none.
fn parse(text: &str) -> Result<Option<JsonText>, String> {
    if text.trim().is_empty() { Ok(None) } else { JsonText::parse(text).map(Some) }
}

fn server(mut there: Map<String, Value>, wanted: &Entry, typed: bool) -> Value {
    if typed {
        there.insert("type".to_owned(), json!("stdio"));
    }
    there.insert("command".to_owned(), json!(wanted.command));
    there.insert("args".to_owned(), json!(wanted.args));
    Value::Object(there)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Entry {
        Entry { command: "tenure".into(), args: vec!["mcp".into()], env: Vec::new() }
    }

    fn put(text: &str) -> Option<String> {
        match edit(text, "mcpServers", Some(&ours()), false).unwrap() {
            Change::Write(text) => Some(text),
            change => {
                assert_eq!(change, Change::Nothing);
                None
            }
        }
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
        assert_eq!(edit(&after, "mcpServers", None, false).unwrap(), Change::Write(before.to_owned()));
    }

    #[test]
    fn a_file_of_our_own_goes_as_it_came() {
        let made = put("").unwrap();
        assert_eq!(edit(&made, "mcpServers", None, false).unwrap(), Change::Delete);
        for before in ["{}", "{}\n", r#"{"mcpServers":{}}"#, r#"{"a": [1, 2]}"#] {
            assert_eq!(edit(before, "mcpServers", None, false).unwrap(), Change::Nothing);
            let after = put(before).unwrap();
            assert_eq!(edit(&after, "mcpServers", None, false).unwrap(), Change::Write(before.to_owned()));
        }
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
