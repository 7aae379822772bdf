//! Gemini CLI with `-o stream-json`: the last event has the error's text, and the exit code is often the provider's
//! status modulo 256.
//!
//! Lines that are not JSON come from its standard error: messages and the output of tools are always JSON. `result.stats`
//! are totals of the process.

use serde_json::Value;
use tenure_core::config::Permissions;
use tenure_core::{Ending, Usage};

use super::access::tenure_commands;
use super::{
    Access, Agent, Event, ProcessEnd, PromptInput, Summary, UsageScope, by_events, by_leading_status,
    by_status, failed, items, number, object, optional, status, stored, text, tool_input, unknown_argument,
    words,
};

pub(super) const AGENT: Agent = Agent {
    name: "gemini",
    program: "gemini",
    args: |access| Ok(args(access)),
    // Otherwise it refuses to run in a folder that was never opened interactively. A runner runs only where a person has
    // trusted the project.
    env: |_| vec![("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned())],
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude,
    begin: Some(|args, conversation| [args, &["--session-id".to_owned(), conversation.to_owned()]].concat()),
    stored: Some(stored::gemini),
    resume: Some(|args, conversation| [args, &["--resume".to_owned(), conversation.to_owned()]].concat()),
};

fn args(access: &Access<'_>) -> Vec<String> {
    let mut args = words(&["-o", "stream-json", "--approval-mode"]);
    if access.permissions == Permissions::Edit {
        args.push("auto_edit".to_owned());
        args.extend(tenure_commands().map(|command| format!("--allowed-tools=run_shell_command({command})")));
    } else {
        args.push("yolo".to_owned());
    }
    args
}

/// The statuses that are recognised in an exit code.
const STATUSES: [u16; 9] = [401, 402, 403, 429, 500, 502, 503, 504, 529];

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return standard_error(line).into_iter().collect() };
    match text(&value, "/type") {
        "init" => vec![Event::Started {
            conversation: optional(&value, "/session_id"),
            model: optional(&value, "/model"),
            version: None,
        }],
        "message" if text(&value, "/role") == "assistant" => {
            let content = text(&value, "/content").to_owned();
            let part = value.get("delta") == Some(&Value::Bool(true));
            vec![if part { Event::MessagePart(content) } else { Event::Message(content) }]
        }
        "tool_use" => vec![Event::ToolBegun {
            name: text(&value, "/tool_name").to_owned(),
            input: tool_input(value.get("parameters").unwrap_or(&Value::Null)),
        }],
        "tool_result" => {
            let output = optional(&value, "/output").or(optional(&value, "/error/message"));
            let failed = text(&value, "/status") == "error";
            let mut events = vec![Event::ToolEnded { failed, output: output.unwrap_or_default() }];
            if failed && text(&value, "/error/type") == "policy_violation" {
                events.push(Event::Denied(text(&value, "/error/message").to_owned()));
            }
            events
        }
        "result" => {
            let mut events: Vec<Event> =
                usage(&value).map(|usage| Event::Usage(UsageScope::Process, usage)).into_iter().collect();
            events.push(result(&value));
            events
        }
        _ => Vec::new(),
    }
}

pub(super) fn conclude(end: ProcessEnd, summary: &Summary) -> Ending {
    match (by_events(end, summary), end) {
        (Ending::Unclassified, ProcessEnd::Exited(41)) => Ending::NotLoggedIn,
        (Ending::Unclassified, ProcessEnd::Exited(52 | 55)) => Ending::Misconfigured,
        (Ending::Unclassified, ProcessEnd::Exited(53)) => Ending::TaskError,
        // Without a reported error, the exit code could be another program's.
        (Ending::Unclassified, ProcessEnd::Exited(code)) if summary.failed.is_some() => {
            let meant = STATUSES.into_iter().find(|status| i32::from(status % 256) == code);
            meant.map_or(Ending::Unclassified, by_status)
        }
        (ending, _) => ending,
    }
}

fn result(value: &Value) -> Event {
    let message = text(value, "/error/message");
    let said = message.strip_prefix("[API Error: ").unwrap_or(message);
    // The closing bracket is at the end of the first line.
    let first = said.lines().next().unwrap_or_default();
    match (text(value, "/status"), text(value, "/error/type")) {
        ("success", _) => Event::Succeeded(None),
        (_, "TerminalQuotaError" | "RetryableQuotaError") => {
            failed(Ending::Limited, first.trim_end_matches(']'))
        }
        _ => failed(by_message(said), first.trim_end_matches(']')),
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let stats = value.get("stats").filter(|stats| stats.is_object())?;
    Some(Usage {
        input_tokens: number(stats, "/input_tokens"),
        output_tokens: number(stats, "/output_tokens"),
        cached_tokens: number(stats, "/cached"),
        cache_write_tokens: 0,
        micro_usd: None,
    })
}

fn standard_error(line: &str) -> Option<Event> {
    if line.starts_with("Please set an Auth method") {
        return Some(failed(Ending::NotLoggedIn, "no authentication method is set"));
    }
    if line.starts_with("Gemini CLI is not running in a trusted directory") {
        return Some(failed(Ending::Misconfigured, line));
    }
    // `Attempt 2 failed with status 503. Retrying with backoff...`
    let Some((_, why)) = line.strip_prefix("Attempt ").and_then(|rest| rest.split_once(" failed")) else {
        return unknown_argument(line);
    };
    let retrying = |why| Some(Event::Retrying { why, message: String::new() });
    match why.strip_prefix(" with status ") {
        Some(rest) => retrying(by_leading_status(rest)),
        None if why.contains("fetch failed") => retrying(Ending::NoNetwork),
        None => None,
    }
}

/// The message may be the provider's answer as JSON.
fn by_message(message: &str) -> Ending {
    if let Some(answer) = leading_object(message) {
        if items(&answer, "/error/details").iter().any(|one| text(one, "/reason") == "API_KEY_INVALID") {
            return Ending::NotLoggedIn;
        }
        return status(&answer, "/error/code").map_or(Ending::Unclassified, by_status);
    }
    if message.starts_with("models/") && message.contains(" is not found") {
        Ending::Misconfigured
    } else if message.starts_with("You have exhausted your") {
        Ending::Limited
    } else if message.starts_with("The model is overloaded") {
        Ending::Overloaded
    } else if message.contains("fetch failed") {
        Ending::NoNetwork
    } else {
        Ending::Unclassified
    }
}

/// The JSON object at the beginning of a text.
fn leading_object(text: &str) -> Option<Value> {
    let first = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?;
    first.ok().filter(Value::is_object)
}
