//! Claude Code with `--output-format stream-json`: errors are typed.
//!
//! `assistant.error` names the kind of an error, `result.api_error_status` has the provider's status,
//! `rate_limit_event` the reset of a usage limit, and `system/api_retry` what it waits for meanwhile.

use serde_json::Value;
use tenure_core::Timestamp;

use super::{Ending, Event, Observed, by_status, object, status, text};

pub(super) fn parse(line: &str) -> Event {
    let Some(value) = object(line) else { return Event::Other };
    match text(&value, "/type") {
        // The main conversation handles the error of a subagent.
        "assistant" if !text(&value, "/parent_tool_use_id").is_empty() => Event::Other,
        "assistant" => match text(&value, "/error") {
            "" => Event::Progress,
            kind => Event::Failed(by_kind(kind)),
        },
        "user" | "stream_event" => Event::Progress,
        "system" if text(&value, "/subtype") == "api_retry" => Event::Retrying(retried(&value)),
        "rate_limit_event" if text(&value, "/rate_limit_info/status") == "rejected" => {
            let seconds = value.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
            Event::LimitReached {
                resets_at: seconds.and_then(|at| at.checked_mul(1000)).map(Timestamp::from_millis),
            }
        }
        "result" => result(&value),
        _ => Event::Other,
    }
}

pub(super) fn conclude(exit: Option<i32>, observed: &Observed) -> Ending {
    match (observed.conclude(exit), observed.retrying) {
        // `server_error` also covers a failed connection; the retries distinguish the two.
        (Ending::Overloaded, Some(Ending::NoNetwork)) => Ending::NoNetwork,
        (ending, _) => ending,
    }
}

fn by_kind(kind: &str) -> Ending {
    match kind {
        "rate_limit" => Ending::Limited { resets_at: None },
        "authentication_failed" | "oauth_org_not_allowed" => Ending::NotLoggedIn,
        "billing_error" => Ending::NoCredit,
        "overloaded" | "server_error" => Ending::Overloaded,
        "model_not_found" => Ending::Misconfigured,
        _ => Ending::Unclassified,
    }
}

fn retried(value: &Value) -> Ending {
    match (by_kind(text(value, "/error")), status(value, "/error_status")) {
        // No answer at all.
        (Ending::Unclassified, None) => Ending::NoNetwork,
        (Ending::Unclassified, Some(status)) => by_status(status),
        (kind, _) => kind,
    }
}

fn result(value: &Value) -> Event {
    match (text(value, "/subtype"), text(value, "/terminal_reason")) {
        ("error_max_turns" | "error_max_budget_usd", _) | (_, "prompt_too_long") => {
            Event::Failed(Ending::TaskError)
        }
        _ if value.pointer("/is_error") == Some(&Value::Bool(true)) => {
            // The kind in the previous line is more specific than, for example, 400 or none.
            Event::Failed(status(value, "/api_error_status").map_or(Ending::Unclassified, by_status))
        }
        ("success", _) => Event::Succeeded,
        _ => Event::Failed(Ending::Unclassified),
    }
}
