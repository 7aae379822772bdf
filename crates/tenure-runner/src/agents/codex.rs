//! Codex with `exec --json`: errors are plain text, in events that contain nothing else.
//!
//! Each kind of error has a text with a fixed beginning, so only beginnings are compared. A usage limit names its
//! reset in local time, without a time zone, and without a date if the reset is on the same day.
//! `turn.completed.usage` is the total of the conversation.

use std::path::Path;

use serde_json::Value;
use tenure_core::config::Permissions;
use tenure_core::{Ending, Usage};

use super::{
    Access, Agent, Event, Login, Place, PromptInput, Reset, UsageScope, by_events, by_leading_status, failed,
    number, object, optional, stored, text, tool_input, unknown_argument, words,
};

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    program: "codex",
    args: |access| Ok(args(access)),
    env: |_| Vec::new(),
    is_sandboxed: true,
    login: Some(Login { check: &["login", "status"], command: "codex login" }),
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude: by_events,
    begin: None,
    stored: Some(stored::codex),
    resume: Some(resume),
};

/// The variables that `tenure` reads. Codex passes only a few common variables to an MCP server unless others
/// are listed.
const VARIABLES: &[&str] = &[
    "TENURE_PROJECT",
    "TENURE_HOME",
    "TENURE_STORE",
    "TENURE_TASK_ID",
    "TENURE_AGENT",
    "TENURE_ATTEMPT",
    "TENURE_FENCE",
    "TENURE_LEASE",
    "TENURE_SUPERVISED",
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGUSER",
    "PGDATABASE",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PGSSLMODE",
    "PGSSLROOTCERT",
];

fn args(access: &Access<'_>) -> Vec<String> {
    // A login shell resets PATH, and then `tenure` may not be found.
    let mut args = words(&["exec", "--json", "--skip-git-repo-check", "-c", "allow_login_shell=false"]);
    let mut set = |setting: String| args.extend(["-c".to_owned(), setting]);
    match (access.permissions, access.place) {
        (Permissions::Full, _) => set("sandbox_mode=\"danger-full-access\"".to_owned()),
        (permissions, place) => {
            set("default_permissions=\"tenure\"".to_owned());
            if let Some(place) = place {
                set(format!("permissions.tenure.filesystem={}", files(place, permissions)));
            }
        }
    }
    // The server is not in the sandbox, so reports reach a store on a server.
    if let Some(place) = access.place {
        set(format!("mcp_servers.tenure.command={}", toml(&place.tenure.to_string_lossy())));
        set("mcp_servers.tenure.args=[\"mcp\"]".to_owned());
        set(format!("mcp_servers.tenure.env_vars={VARIABLES:?}"));
        set("mcp_servers.tenure.default_tools_approval_mode=\"approve\"".to_owned());
    }
    args.push("-".to_owned());
    args
}

/// What the sandbox lets commands read and write. `.git` is read-only by default.
fn files(place: &Place, permissions: Permissions) -> String {
    let mut rules = vec![
        "\":root\"=\"read\"".to_owned(),
        "\":workspace_roots\"={\".\"=\"write\"}".to_owned(),
        "\":tmpdir\"=\"write\"".to_owned(),
        "\":slash_tmp\"=\"write\"".to_owned(),
    ];
    let mut rule = |path: &Path, access| rules.push(format!("{}={access:?}", toml(&path.to_string_lossy())));
    rule(&place.store_folder(), "write");
    rule(&place.config_file(), "read");
    if permissions == Permissions::Work {
        place.git_folders().iter().for_each(|folder| rule(folder, "write"));
        place.git_settings().iter().for_each(|settings| rule(settings, "read"));
    }
    format!("{{{}}}", rules.join(","))
}

/// A string as TOML, which has the same escapes as JSON.
fn toml(text: &str) -> String {
    Value::from(text).to_string()
}

/// The beginning of an error text, and its meaning.
const BEGINNINGS: &[(&str, Ending)] = &[
    ("You've hit your usage limit", Ending::Limited),
    ("Rate limit reached", Ending::Limited),
    ("Quota exceeded", Ending::NoCredit),
    ("You exceeded your current quota", Ending::NoCredit),
    ("Your workspace is out of credits", Ending::NoCredit),
    ("You hit your spend cap", Ending::NoCredit),
    ("To use Codex with your ChatGPT plan", Ending::NoCredit),
    ("We're currently experiencing high demand", Ending::Overloaded),
    ("Selected model is at capacity", Ending::Overloaded),
    ("Connection failed", Ending::NoNetwork),
    ("failed to lookup address", Ending::NoNetwork),
    ("error sending request", Ending::NoNetwork),
    ("Your access token could not be refreshed", Ending::NotLoggedIn),
    ("Access blocked by Cloudflare", Ending::NotLoggedIn),
    ("Codex ran out of room in the model's context window", Ending::TaskError),
];

fn resume(args: &[String], conversation: &str) -> Vec<String> {
    // The options of `exec` come before its subcommand, and `-` for standard input comes last.
    let (options, input) = match args.split_last() {
        Some((last, options)) if last == "-" => (options, Some(last.clone())),
        _ => (args, None),
    };
    let mut args = [options, &["resume".to_owned(), conversation.to_owned()]].concat();
    args.extend(input);
    args
}

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else {
        let untrusted = line.starts_with("Not inside a trusted directory");
        let event = untrusted.then(|| failed(Ending::Misconfigured, line));
        return event.or_else(|| unknown_argument(line)).into_iter().collect();
    };
    let message = text(&value, "/message");
    match text(&value, "/type") {
        "thread.started" => {
            vec![Event::Started { conversation: optional(&value, "/thread_id"), model: None, version: None }]
        }
        "error" => vec![match message.strip_prefix("Reconnecting...") {
            // `2/5 (why)` or `waiting for network (why)`.
            Some(retry) => {
                let why = retry.split_once('(').map_or(retry, |(_, why)| why);
                let message = why.strip_suffix(')').unwrap_or(why).to_owned();
                Event::Retrying { why: by_message(why), message }
            }
            None => failed(by_message(message), message),
        }],
        "turn.failed" => {
            let message = text(&value, "/error/message");
            let (why, reset) = (by_message(message), reset(message));
            let limit = Event::Limit { kind: None, reset };
            let limit = (why == Ending::Limited && reset.is_some()).then_some(limit);
            limit.into_iter().chain([failed(why, message)]).collect()
        }
        "turn.completed" => {
            vec![Event::Usage(UsageScope::Conversation, usage(&value)), Event::Succeeded(None)]
        }
        "item.started" => begun(&value).into_iter().collect(),
        "item.completed" => ended(&value),
        _ => Vec::new(),
    }
}

fn usage(value: &Value) -> Usage {
    Usage {
        input_tokens: number(value, "/usage/input_tokens"),
        output_tokens: number(value, "/usage/output_tokens"),
        cached_tokens: number(value, "/usage/cached_input_tokens"),
        cache_write_tokens: number(value, "/usage/cache_write_input_tokens"),
        micro_usd: None,
    }
}

fn begun(value: &Value) -> Option<Event> {
    let item = value.get("item")?;
    match text(item, "/type") {
        name @ ("command_execution" | "web_search" | "file_change") => {
            Some(Event::ToolBegun { name: name.to_owned(), input: tool_input(item) })
        }
        "mcp_tool_call" => Some(Event::ToolBegun {
            name: format!("{}.{}", text(item, "/server"), text(item, "/tool")),
            input: tool_input(item.get("arguments").unwrap_or(&Value::Null)),
        }),
        _ => None,
    }
}

fn ended(value: &Value) -> Vec<Event> {
    let Some(item) = value.get("item") else { return Vec::new() };
    let broken = text(item, "/status") == "failed";
    match text(item, "/type") {
        // A warning, for example about a fallback.
        "error" => Vec::new(),
        "agent_message" => vec![Event::Message(text(item, "/text").to_owned())],
        "command_execution" => {
            vec![Event::ToolEnded { failed: broken, output: text(item, "/aggregated_output").to_owned() }]
        }
        "mcp_tool_call" => {
            let why = text(item, "/error/message");
            let mut events = vec![Event::ToolEnded { failed: broken, output: why.to_owned() }];
            // Written by Codex itself, not by the tool.
            if broken && why.starts_with("MCP tool call requires approval") {
                events.push(Event::Denied(format!("{}.{}", text(item, "/server"), text(item, "/tool"))));
            }
            events
        }
        _ => vec![Event::Progress],
    }
}

/// Parses the reset of a limit from the last words of the message.
fn reset(message: &str) -> Option<Reset> {
    let (_, time) = message.rsplit_once("ry again at ")?;
    Reset::parse_local(time.trim_end_matches('.'))
}

fn by_message(message: &str) -> Ending {
    let message = message.replace('\u{2019}', "'");
    let message = message.strip_prefix("stream disconnected before completion: ").unwrap_or(&message);
    for before in ["unexpected status ", "exceeded retry limit, last status: "] {
        if let Some(rest) = message.strip_prefix(before) {
            return by_leading_status(rest);
        }
    }
    if message.starts_with("The model `") && message.contains("` does not exist") {
        return Ending::Misconfigured;
    }
    let known = BEGINNINGS.iter().find(|(beginning, _)| message.starts_with(beginning));
    known.map_or(Ending::Unclassified, |(_, ending)| *ending)
}
