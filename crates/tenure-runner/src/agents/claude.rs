//! Claude Code with `--output-format stream-json`: errors are typed.
//!
//! `assistant.error` names the kind of an error, `result.api_error_status` has the provider's status, `rate_limit_event`
//! the reset of a usage limit, `system/api_retry` what it waits for meanwhile, and `result.permission_denials` what it was
//! not allowed to do. `modelUsage` and `total_cost_usd` are totals of the process.

use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_core::config::Permissions;
use tenure_core::{Ending, Timestamp, Usage};

use super::access::tenure_commands;
use super::{
    Access, AccessError, Agent, Event, Login, Place, ProcessEnd, PromptInput, Reset, Summary, UsageScope,
    by_events, by_status, failed, items, micro_usd, number, object, optional, status, stored, text,
    tool_input, unknown_argument, words,
};

pub(super) const AGENT: Agent = Agent {
    name: "claude",
    program: "claude",
    args,
    env: |_| Vec::new(),
    is_sandboxed: true,
    login: Some(Login { check: &["auth", "status"], command: "claude auth login" }),
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude,
    begin: Some(|args, conversation| [args, &["--session-id".to_owned(), conversation.to_owned()]].concat()),
    stored: Some(stored::claude),
    resume: Some(|args, conversation| [args, &["--resume".to_owned(), conversation.to_owned()]].concat()),
};

fn args(access: &Access<'_>) -> Result<Vec<String>, AccessError> {
    let mut args = words(&["-p", "--output-format", "stream-json", "--verbose", "--permission-mode"]);
    if access.permissions == Permissions::Full {
        args.push("bypassPermissions".to_owned());
    } else {
        args.extend(["acceptEdits".to_owned(), "--settings".to_owned(), settings(access)?.to_string()]);
    }
    // The server is not in the sandbox, so reports reach a store on a server.
    if let Some(place) = access.place {
        let server = json!({"command": place.tenure, "args": ["mcp"]});
        args.extend(["--mcp-config".to_owned(), json!({"mcpServers": {"tenure": server}}).to_string()]);
    }
    Ok(args)
}

/// Contains every permission that the agent needs, because Claude Code ignores what an untrusted project
/// allows.
fn settings(access: &Access<'_>) -> Result<Value, AccessError> {
    let mut allow: Vec<String> = tenure_commands().map(|command| format!("Bash({command}:*)")).collect();
    allow.push("mcp__tenure".to_owned());
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let config = access.place.map(|place| path(place.config_file()));
    // In a rule, an absolute path begins with two slashes.
    let deny: Vec<String> = config.iter().map(|config| format!("Edit(/{config})")).collect();
    let work = access.permissions == Permissions::Work;
    if work && !access.has_sandbox {
        if access.allow.is_empty() {
            return Err(AccessError::NoSandbox);
        }
        allow.extend(access.allow.iter().map(|command| format!("Bash({command}:*)")));
    }
    let mut settings = json!({"permissions": {"allow": allow, "deny": deny}});
    if work && access.has_sandbox {
        let outside = |place: &Place| {
            let folders = place.git_folders().into_iter().chain([place.store_folder()]);
            folders.filter(|folder| !folder.starts_with(&place.workdir)).map(path).collect::<Vec<_>>()
        };
        let settings_of_git = access.place.map(Place::git_settings).unwrap_or_default();
        let protected: Vec<String> =
            config.into_iter().chain(settings_of_git.into_iter().map(path)).collect();
        settings["sandbox"] = json!({
            "enabled": true,
            "autoAllowBashIfSandboxed": true,
            "failIfUnavailable": true,
            "allowUnsandboxedCommands": false,
            "filesystem": {
                "allowWrite": access.place.map(outside).unwrap_or_default(),
                "denyWrite": protected,
            },
        });
    }
    Ok(settings)
}

pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return unknown_argument(line).into_iter().collect() };
    match (text(&value, "/type"), text(&value, "/subtype")) {
        ("system", "init") => vec![Event::Started {
            conversation: optional(&value, "/session_id"),
            model: optional(&value, "/model"),
            version: optional(&value, "/claude_code_version"),
        }],
        ("system", "api_retry") => {
            vec![Event::Retrying { why: retried(&value), message: String::new() }]
        }
        ("system", "permission_denied") => vec![Event::Denied(text(&value, "/tool_name").to_owned())],
        ("assistant", _) => assistant(&value),
        ("user", _) => items(&value, "/message/content").iter().filter_map(tool_result).collect(),
        ("rate_limit_event", _) => limit(&value).into_iter().collect(),
        ("result", subtype) => result(&value, subtype),
        _ => Vec::new(),
    }
}

pub(super) fn conclude(end: ProcessEnd, summary: &Summary) -> Ending {
    match (by_events(end, summary), &summary.retrying) {
        // `server_error` also covers a failed connection; the retries distinguish the two.
        (Ending::Overloaded, Some((Ending::NoNetwork, _))) => Ending::NoNetwork,
        (ending, _) => ending,
    }
}

fn assistant(value: &Value) -> Vec<Event> {
    let within_subagent = !text(value, "/parent_tool_use_id").is_empty();
    match text(value, "/error") {
        "" => {}
        // The main conversation handles the error of a subagent.
        _ if within_subagent => return Vec::new(),
        kind => {
            let said = items(value, "/message/content").first().map(|block| text(block, "/text"));
            return vec![failed(by_kind(kind), said.unwrap_or_default())];
        }
    }
    let mut events: Vec<Event> = items(value, "/message/content").iter().map(block).collect();
    if events.is_empty() {
        events.push(Event::Progress);
    }
    if value.pointer("/message/usage").is_some() {
        let usage = Usage {
            input_tokens: number(value, "/message/usage/input_tokens"),
            output_tokens: number(value, "/message/usage/output_tokens"),
            cached_tokens: number(value, "/message/usage/cache_read_input_tokens"),
            cache_write_tokens: number(value, "/message/usage/cache_creation_input_tokens"),
            micro_usd: None,
        };
        events.push(Event::Usage(UsageScope::Request(optional(value, "/message/id")), usage));
    }
    events
}

fn block(block: &Value) -> Event {
    match text(block, "/type") {
        "text" => Event::Message(text(block, "/text").to_owned()),
        "tool_use" => Event::ToolBegun {
            name: text(block, "/name").to_owned(),
            input: tool_input(block.get("input").unwrap_or(&Value::Null)),
        },
        _ => Event::Progress,
    }
}

fn tool_result(block: &Value) -> Option<Event> {
    if text(block, "/type") != "tool_result" {
        return None;
    }
    let parts = || items(block, "/content").iter().map(|part| text(part, "/text")).collect::<String>();
    let output = block.get("content").and_then(Value::as_str).map_or_else(parts, str::to_owned);
    Some(Event::ToolEnded { failed: block.get("is_error") == Some(&Value::Bool(true)), output })
}

fn limit(value: &Value) -> Option<Event> {
    if text(value, "/rate_limit_info/status") != "rejected" {
        return None;
    }
    if text(value, "/rate_limit_info/errorCode") == "credits_required" {
        return Some(failed(Ending::NoCredit, ""));
    }
    if value.pointer("/rate_limit_info/isUsingOverage") == Some(&Value::Bool(true)) {
        return None;
    }
    let seconds = value.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
    Some(Event::Limit {
        kind: optional(value, "/rate_limit_info/rateLimitType"),
        reset: seconds.and_then(|at| at.checked_mul(1000)).map(|at| Reset::At(Timestamp::from_millis(at))),
    })
}

fn by_kind(kind: &str) -> Ending {
    match kind {
        "rate_limit" => Ending::Limited,
        "authentication_failed" | "oauth_org_not_allowed" => Ending::NotLoggedIn,
        "billing_error" => Ending::NoCredit,
        "overloaded" | "server_error" => Ending::Overloaded,
        "model_not_found" => Ending::Misconfigured,
        _ => Ending::Unclassified,
    }
}

fn retried(value: &Value) -> Ending {
    match (by_kind(text(value, "/error")), status(value, "/error_status")) {
        // Without a status, the provider did not answer at all.
        (Ending::Unclassified, None) => Ending::NoNetwork,
        (Ending::Unclassified, Some(status)) => by_status(status),
        (kind, _) => kind,
    }
}

fn result(value: &Value, subtype: &str) -> Vec<Event> {
    let denials = items(value, "/permission_denials").iter().map(|denial| {
        let tool = text(denial, "/tool_name");
        let input = tool_input(denial.get("tool_input").unwrap_or(&Value::Null));
        Event::Denied(if input.is_empty() { tool.to_owned() } else { format!("{tool}: {input}") })
    });
    let mut events: Vec<Event> = denials.collect();
    events.extend(usage(value).map(|usage| Event::Usage(UsageScope::Process, usage)));
    let said = text(value, "/result");
    let is_error = value.get("is_error") == Some(&Value::Bool(true));
    events.push(match (subtype, text(value, "/terminal_reason")) {
        ("error_max_turns" | "error_max_budget_usd" | "error_max_structured_output_retries", _)
        | (_, "prompt_too_long" | "max_turns" | "budget_exhausted") => {
            failed(Ending::TaskError, if said.is_empty() { subtype } else { said })
        }
        (_, "blocking_limit") => failed(Ending::Limited, said),
        _ if is_error => failed(refused(value, said), said),
        ("success", _) if value.get("is_error") == Some(&Value::Bool(false)) => {
            Event::Succeeded(Some(said.to_owned()))
        }
        _ => failed(Ending::Unclassified, items(value, "/errors").first().map_or(said, |e| text(e, ""))),
    });
    events
}

/// The preceding line often names the kind of error, which is more specific than this: the status may be 400
/// or missing.
fn refused(value: &Value, said: &str) -> Ending {
    let said = said.strip_prefix("API Error: ").unwrap_or(said);
    match status(value, "/api_error_status") {
        // The status is 429 here as well, but the limit is not the account's.
        _ if said.starts_with("Server is temporarily limiting requests") => Ending::Overloaded,
        Some(status) => by_status(status),
        None if said.starts_with("Unable to connect to API") => Ending::NoNetwork,
        None => Ending::Unclassified,
    }
}

/// `usage` covers the main conversation only, `modelUsage` also its subagents.
fn usage(value: &Value) -> Option<Usage> {
    let models = value.get("modelUsage")?.as_object()?;
    let mut all = Usage { micro_usd: micro_usd(value, "/total_cost_usd"), ..Usage::default() };
    for model in models.values() {
        all = all.plus(Usage {
            input_tokens: number(model, "/inputTokens"),
            output_tokens: number(model, "/outputTokens"),
            cached_tokens: number(model, "/cacheReadInputTokens"),
            cache_write_tokens: number(model, "/cacheCreationInputTokens"),
            micro_usd: None,
        });
    }
    Some(all)
}
