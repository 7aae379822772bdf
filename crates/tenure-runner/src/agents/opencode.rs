//! opencode: `run --format json` prints an error as a typed event, `run` as one coloured line.
//!
//! The second format prints the model's output unchanged, so the lines of a run that exits with 0 say nothing about its
//! ending, except for the header. Neither format prints anything while a request is retried.

use serde_json::{Value, json};
use tenure_core::config::Permissions;
use tenure_core::{Ending, Usage};

use super::access::tenure_commands;
use super::{
    Access, Agent, Event, ProcessEnd, PromptInput, Summary, UsageScope, by_events, by_status, failed,
    micro_usd, number, object, optional, status, text, tool_input, words,
};

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    program: "opencode",
    // Without `run`, opencode opens its terminal interface; without a message, it reads one from standard input. Without
    // `--auto`, the first permission that is not granted ends the run; with it, only what is explicitly denied stays
    // denied.
    args: |_| Ok(words(&["run", "--auto", "--format", "json"])),
    env,
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude,
    begin: None,
    stored: None,
    resume: Some(|args, conversation| [args, &["--session".to_owned(), conversation.to_owned()]].concat()),
};

fn env(access: &Access<'_>) -> Vec<(&'static str, String)> {
    if access.permissions != Permissions::Edit {
        return Vec::new();
    }
    // The last rule that matches counts.
    let mut bash = serde_json::Map::from_iter([("*".to_owned(), Value::from("deny"))]);
    bash.extend(tenure_commands().map(|command| (format!("{command} *"), Value::from("allow"))));
    let rules = json!({"bash": bash, "edit": "allow", "external_directory": "deny", "webfetch": "deny"});
    vec![("OPENCODE_PERMISSION", rules.to_string())]
}

/// The beginning of a tool's error if the tool was denied.
const DENIED: &str = "The user has specified a rule which prevents you from using this specific tool call";

/// The beginning of the line that reports a fatal error.
const ERROR: &str = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0m";

/// Parts of the providers' messages, in lower case. The first match counts.
const PARTS: &[(&str, Ending)] = &[
    ("exceeded your current quota", Ending::NoCredit),
    ("credit balance", Ending::NoCredit),
    ("insufficient credits", Ending::NoCredit),
    ("insufficient balance", Ending::NoCredit),
    ("rate limit", Ending::Limited),
    ("usage limit", Ending::Limited),
    ("too many requests", Ending::Limited),
    ("does not exist", Ending::Misconfigured),
    ("api key", Ending::NotLoggedIn),
    ("unauthorized", Ending::NotLoggedIn),
    ("forbidden", Ending::NotLoggedIn),
    ("not have access", Ending::NotLoggedIn),
    ("not allowed", Ending::NotLoggedIn),
    ("permission", Ending::NotLoggedIn),
    ("overloaded", Ending::Overloaded),
    ("internal server error", Ending::Overloaded),
    ("internal error", Ending::Overloaded),
    ("the server had an error", Ending::Overloaded),
    ("service unavailable", Ending::Overloaded),
    ("bad gateway", Ending::Overloaded),
    ("cannot connect to api", Ending::NoNetwork),
    ("unable to connect", Ending::NoNetwork),
    ("model not found", Ending::Misconfigured),
];

pub(super) fn parse(line: &str) -> Vec<Event> {
    if let Some(message) = line.strip_prefix(ERROR) {
        return vec![failed(by_message(message), message)];
    }
    // Every event of the first format names its session; JSON printed by the model in the second one does not.
    match object(line).filter(|value| !text(value, "/sessionID").is_empty()) {
        Some(value) => event(&value),
        None => plain(line).into_iter().collect(),
    }
}

pub(super) fn conclude(end: ProcessEnd, summary: &Summary) -> Ending {
    match (end, by_events(end, summary)) {
        // The header with the model is printed only in the second format.
        (ProcessEnd::Exited(0), _) if summary.model.is_some() && summary.denied.is_none() => Ending::Done,
        (ProcessEnd::Exited(0), Ending::Unclassified) if summary.denied.is_some() => Ending::PermissionDenied,
        (_, ending) => ending,
    }
}

fn event(value: &Value) -> Vec<Event> {
    let part = value.get("part").unwrap_or(&Value::Null);
    match text(value, "/type") {
        "step_start" => {
            vec![Event::Started { conversation: optional(value, "/sessionID"), model: None, version: None }]
        }
        "text" => vec![Event::Message(text(part, "/text").to_owned())],
        "reasoning" => vec![Event::Progress],
        "tool_use" => {
            let name = text(part, "/tool").to_owned();
            let input = tool_input(part.pointer("/state/input").unwrap_or(&Value::Null));
            let failed = text(part, "/state/status") == "error";
            let output = optional(part, "/state/output").or(optional(part, "/state/error"));
            let mut events = Vec::new();
            if failed && text(part, "/state/error").starts_with(DENIED) {
                events.push(Event::Denied(format!("{name}: {input}")));
            }
            events.push(Event::ToolBegun { name, input });
            events.push(Event::ToolEnded { failed, output: output.unwrap_or_default() });
            events
        }
        "step_finish" => {
            let usage = Usage {
                input_tokens: number(part, "/tokens/input"),
                output_tokens: number(part, "/tokens/output"),
                cached_tokens: number(part, "/tokens/cache/read"),
                cache_write_tokens: number(part, "/tokens/cache/write"),
                micro_usd: micro_usd(part, "/cost"),
            };
            let ended = matches!(text(part, "/reason"), "stop" | "other" | "unknown");
            let last = if ended { Event::Succeeded(None) } else { Event::Progress };
            vec![Event::Usage(UsageScope::Request(None), usage), last]
        }
        "error" => {
            let data = value.pointer("/error/data").unwrap_or(&Value::Null);
            let message = text(data, "/message");
            vec![failed(by_error(value, data, message), message)]
        }
        _ => Vec::new(),
    }
}

/// Parses a line that is not an event.
fn plain(line: &str) -> Option<Event> {
    let line = without_colours(line);
    if let Some(what) = line.strip_prefix("! permission requested: ") {
        let what = what.split_once(';').map_or(what, |(what, _)| what);
        return Some(Event::Denied(what.to_owned()));
    }
    // `> build · MODEL`
    let (_, model) = line.strip_prefix("> ").and_then(|rest| rest.split_once(" · "))?;
    Some(Event::Started { conversation: None, model: Some(model.to_owned()), version: None })
}

fn by_error(value: &Value, data: &Value, message: &str) -> Ending {
    match text(value, "/error/name") {
        "ProviderAuthError" => return Ending::NotLoggedIn,
        "ProviderModelNotFoundError" => return Ending::Misconfigured,
        "ContextOverflowError" => return Ending::TaskError,
        _ => {}
    }
    // A limit and missing credit have the same status, so the message is more specific.
    match by_message(message) {
        Ending::Unclassified => status(data, "/statusCode").map_or(Ending::Unclassified, by_status),
        known => known,
    }
}

fn by_message(message: &str) -> Ending {
    let message = message.to_lowercase();
    let known = PARTS.iter().find(|(part, _)| message.contains(part));
    known.map_or(Ending::Unclassified, |(_, ending)| *ending)
}

/// The line without escape sequences for colours.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut pieces = line.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or(piece, |(_, rest)| rest));
    }
    plain
}
