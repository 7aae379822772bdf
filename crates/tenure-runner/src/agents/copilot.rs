//! GitHub Copilot CLI with `--output-format json`. The `result` event was seen in real runs; the names of the other events
//! are those of its SDK.

use serde_json::Value;
use tenure_core::config::Permissions;
use tenure_core::{Ending, Usage};

use super::access::tenure_commands;
use super::{
    Access, Agent, Event, PromptInput, UsageScope, by_events, by_status, failed, number, object, optional,
    status, stored, text, tool_input, unknown_argument, words,
};

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    program: "copilot",
    args: |access| Ok(args(access)),
    env: |_| Vec::new(),
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude: by_events,
    begin: Some(|args, conversation| [args, &[format!("--session-id={conversation}")]].concat()),
    stored: Some(stored::copilot),
    resume: Some(|args, conversation| [args, &[format!("--resume={conversation}")]].concat()),
};

fn args(access: &Access<'_>) -> Vec<String> {
    let mut args = words(&["--output-format", "json", "--no-ask-user"]);
    match access.permissions {
        Permissions::Edit => {
            args.push("--allow-tool=write".to_owned());
            args.extend(tenure_commands().map(|command| format!("--allow-tool=shell({command}:*)")));
        }
        Permissions::Work => args.push("--allow-all-tools".to_owned()),
        Permissions::Full => args.push("--allow-all".to_owned()),
    }
    args
}

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return unknown_argument(line).into_iter().collect() };
    let data = value.get("data").unwrap_or(&Value::Null);
    match text(&value, "/type") {
        "session.start" => vec![Event::Started {
            conversation: optional(data, "/sessionId"),
            model: optional(data, "/selectedModel"),
            version: optional(data, "/copilotVersion"),
        }],
        "assistant.message" => vec![Event::Message(text(data, "/content").to_owned())],
        "assistant.reasoning" => vec![Event::Progress],
        "model.call_failure" => {
            let by_kind = if text(data, "/failureKind") == "transport" {
                Ending::NoNetwork
            } else {
                Ending::Unclassified
            };
            let why = status(data, "/statusCode").map_or(by_kind, by_status);
            vec![Event::Retrying { why, message: text(data, "/errorMessage").to_owned() }]
        }
        "assistant.usage" => vec![Event::Usage(
            UsageScope::Request(None),
            Usage {
                input_tokens: number(data, "/inputTokens"),
                output_tokens: number(data, "/outputTokens"),
                cached_tokens: number(data, "/cacheReadTokens"),
                cache_write_tokens: number(data, "/cacheWriteTokens"),
                micro_usd: None,
            },
        )],
        "tool.execution_start" => vec![Event::ToolBegun {
            name: text(data, "/toolName").to_owned(),
            input: tool_input(data.get("arguments").unwrap_or(&Value::Null)),
        }],
        "tool.execution_complete" => {
            let output = optional(data, "/result/content").or(optional(data, "/error/message"));
            let failed = data.get("success") == Some(&Value::Bool(false));
            let mut events = vec![Event::ToolEnded { failed, output: output.unwrap_or_default() }];
            if failed && text(data, "/error/code") == "denied" {
                events.push(Event::Denied(text(data, "/error/message").to_owned()));
            }
            events
        }
        "session.error" => {
            let why = status(data, "/statusCode").map_or(Ending::Unclassified, by_status);
            let why = if why == Ending::Unclassified { by_type(text(data, "/errorType")) } else { why };
            vec![failed(why, text(data, "/message"))]
        }
        "result" => {
            let conversation = optional(&value, "/sessionId");
            let mut events = vec![Event::Started { conversation, model: None, version: None }];
            if value.get("exitCode").and_then(Value::as_i64) == Some(0) {
                events.push(Event::Succeeded(None));
            }
            events
        }
        _ => Vec::new(),
    }
}

fn by_type(kind: &str) -> Ending {
    match kind {
        "authentication" | "authorization" => Ending::NotLoggedIn,
        "rate_limit" => Ending::Limited,
        "quota" => Ending::NoCredit,
        _ => Ending::Unclassified,
    }
}
