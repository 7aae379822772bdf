//! Antigravity's `agy` with `--output-format stream-json`. Not tested: from descriptions of its versions 1.1.
//!
//! It takes its prompt only as an argument, and may exit with 0 after a failure.

use serde_json::Value;
use tenure_core::{Ending, Usage};

use super::{
    Agent, Event, PromptInput, UsageScope, by_events, failed, number, object, optional, text,
    unknown_argument, unlimited,
};

pub(super) const AGENT: Agent = Agent {
    name: "agy",
    program: "agy",
    args: |access| unlimited(access, ARGS),
    env: |_| Vec::new(),
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Argument,
    tested: false,
    parse,
    conclude: by_events,
    begin: None,
    stored: None,
    resume: Some(|args, conversation| {
        // `-p` stays last.
        let (last, options) =
            args.split_last().map_or((&[][..], args), |(_, options)| (&args[options.len()..], options));
        [options, &["--conversation".to_owned(), conversation.to_owned()], last].concat()
    }),
};

/// Without `--add-dir`, `agy` writes to its own folder instead of the project.
const ARGS: &[&str] = &[
    "--add-dir",
    ".",
    "--output-format",
    "stream-json",
    "--dangerously-skip-permissions",
    "--print-timeout",
    "24h",
    "-p",
];

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return unknown_argument(line).into_iter().collect() };
    match text(&value, "/event") {
        "init" => vec![Event::Started {
            conversation: optional(&value, "/conversation_id"),
            model: optional(&value, "/model"),
            version: None,
        }],
        "step_update" => step(&value).into_iter().collect(),
        "result" => {
            let usage = value.get("usage").filter(|usage| usage.is_object()).map(|usage| Usage {
                input_tokens: number(usage, "/input_tokens"),
                output_tokens: number(usage, "/output_tokens"),
                cached_tokens: number(usage, "/cached_tokens"),
                cache_write_tokens: 0,
                micro_usd: None,
            });
            let mut events: Vec<Event> =
                usage.map(|usage| Event::Usage(UsageScope::Process, usage)).into_iter().collect();
            events.push(match text(&value, "/status") {
                "SUCCESS" => Event::Succeeded(optional(&value, "/response")),
                _ => failed(Ending::Unclassified, text(&value, "/error/message")),
            });
            events
        }
        _ => Vec::new(),
    }
}

fn step(value: &Value) -> Option<Event> {
    match text(value, "/step_type") {
        "agent_response" => Some(Event::MessagePart(text(value, "/text_delta").to_owned())),
        "tool" if text(value, "/state") == "DONE" => {
            Some(Event::ToolEnded { failed: false, output: String::new() })
        }
        "tool" => {
            Some(Event::ToolBegun { name: text(value, "/tool_info/name").to_owned(), input: String::new() })
        }
        _ => None,
    }
}
