//! Cursor's `cursor-agent` with `--output-format stream-json`. Not tested: from its documentation. It prints no usage.

use serde_json::Value;
use tenure_core::Ending;

use super::{
    Agent, Event, PromptInput, by_events, failed, items, object, optional, text, unknown_argument, unlimited,
};

pub(super) const AGENT: Agent = Agent {
    name: "cursor",
    program: "cursor-agent",
    args: |access| unlimited(access, &["-p", "--output-format", "stream-json", "--force", "--trust"]),
    env: |_| Vec::new(),
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: false,
    parse,
    conclude: by_events,
    begin: None,
    stored: None,
    resume: Some(|args, conversation| [args, &["--resume".to_owned(), conversation.to_owned()]].concat()),
};

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return unknown_argument(line).into_iter().collect() };
    match (text(&value, "/type"), text(&value, "/subtype")) {
        ("system", "init") => vec![Event::Started {
            conversation: optional(&value, "/session_id"),
            model: optional(&value, "/model"),
            version: None,
        }],
        ("assistant", _) => {
            let content = items(&value, "/message/content");
            vec![Event::Message(content.iter().map(|part| text(part, "/text")).collect())]
        }
        ("thinking", _) => vec![Event::Progress],
        ("tool_call", "started") => {
            let call = value.get("tool_call").and_then(Value::as_object);
            let name = call.and_then(|call| call.keys().next()).cloned().unwrap_or_default();
            vec![Event::ToolBegun { name, input: String::new() }]
        }
        ("tool_call", "completed") => vec![Event::ToolEnded { failed: false, output: String::new() }],
        ("result", subtype) => {
            let said = text(&value, "/result");
            let well = subtype == "success" && value.get("is_error") == Some(&Value::Bool(false));
            vec![if well {
                Event::Succeeded(Some(said.to_owned()))
            } else {
                failed(Ending::Unclassified, said)
            }]
        }
        _ => Vec::new(),
    }
}
