//! GitHub Copilot CLI with `--output-format json`. The `result` event was seen in real runs; the names of the other events
//! are those of its SDK.

use serde_json::Value;
use tenure_core::{Ending, Usage};

use super::{
    Agent, Event, PromptInput, UsageScope, by_events, by_status, failed, number, object, optional, status,
    text, tool_input, unknown_argument,
};

pub(super) const AGENT: Agent = Agent {
    name: "copilot",
    command: &["copilot", "--allow-all-tools", "--output-format", "json"],
    env: &[],
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude: by_events,
    resume: Some(|args, conversation| [args, &[format!("--resume={conversation}")]].concat()),
};

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
        "assistant.reasoning" | "assistant.turn_end" => vec![Event::Progress],
        "assistant.usage" => vec![Event::Usage(
            UsageScope::Request(None),
            Usage {
                input_tokens: number(data, "/inputTokens"),
                output_tokens: number(data, "/outputTokens"),
                cached_tokens: number(data, "/cacheReadTokens"),
                micro_usd: None,
            },
        )],
        "tool.execution_start" => vec![Event::ToolBegun {
            name: text(data, "/toolName").to_owned(),
            input: tool_input(data.get("arguments").unwrap_or(&Value::Null)),
        }],
        "tool.execution_complete" => vec![Event::ToolEnded {
            failed: data.get("success") == Some(&Value::Bool(false)),
            output: optional(data, "/result/content")
                .or(optional(data, "/error/message"))
                .unwrap_or_default(),
        }],
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
