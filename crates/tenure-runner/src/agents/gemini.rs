//! Gemini CLI with `-o stream-json`: the last event has the error's text, and the exit code is often the provider's
//! status modulo 256.
//!
//! Lines that are not JSON come from its standard error: messages and the output of tools are always JSON.

use serde_json::Value;

use super::{Ending, Event, Observed, by_leading_status, by_status, object, status, text};

/// The statuses that are recognised in an exit code.
const STATUSES: [u16; 9] = [401, 402, 403, 429, 500, 502, 503, 504, 529];

pub(super) fn parse(line: &str) -> Event {
    let Some(value) = object(line) else { return standard_error(line) };
    match text(&value, "/type") {
        "result" if text(&value, "/status") == "success" => Event::Succeeded,
        "result" => Event::Failed(match text(&value, "/error/type") {
            "TerminalQuotaError" => Ending::Limited { resets_at: None },
            _ => by_message(text(&value, "/error/message")),
        }),
        "message" if text(&value, "/role") == "assistant" => Event::Progress,
        "tool_use" | "tool_result" => Event::Progress,
        _ => Event::Other,
    }
}

pub(super) fn conclude(exit: Option<i32>, observed: &Observed) -> Ending {
    match (observed.conclude(exit), exit) {
        (Ending::Unclassified, Some(41)) => Ending::NotLoggedIn,
        (Ending::Unclassified, Some(52 | 55)) => Ending::Misconfigured,
        (Ending::Unclassified, Some(53)) => Ending::TaskError,
        // Without a reported error, the exit code could be another program's.
        (Ending::Unclassified, Some(code)) if observed.failed.is_some() => {
            let meant = STATUSES.into_iter().find(|status| i32::from(status % 256) == code);
            meant.map_or(Ending::Unclassified, by_status)
        }
        (ending, _) => ending,
    }
}

fn standard_error(line: &str) -> Event {
    if line.starts_with("Please set an Auth method") {
        return Event::Failed(Ending::NotLoggedIn);
    }
    if line.starts_with("Gemini CLI is not running in a trusted directory") {
        return Event::Failed(Ending::Misconfigured);
    }
    // `Attempt 2 failed with status 503. Retrying with backoff...`
    let Some((_, why)) = line.strip_prefix("Attempt ").and_then(|rest| rest.split_once(" failed")) else {
        return Event::Other;
    };
    match why.strip_prefix(" with status ") {
        Some(rest) => Event::Retrying(by_leading_status(rest)),
        None if why.contains("fetch failed") => Event::Retrying(Ending::NoNetwork),
        None => Event::Other,
    }
}

/// `[API Error: TEXT]`, where the text may be the provider's answer as JSON.
fn by_message(message: &str) -> Ending {
    let message = message.strip_prefix("[API Error: ").unwrap_or(message);
    if let Some(answer) = leading_object(message) {
        let details = answer.pointer("/error/details").and_then(Value::as_array);
        let refused =
            details.is_some_and(|all| all.iter().any(|one| text(one, "/reason") == "API_KEY_INVALID"));
        if refused {
            return Ending::NotLoggedIn;
        }
        return status(&answer, "/error/code").map_or(Ending::Unclassified, by_status);
    }
    if message.starts_with("models/") && message.contains(" is not found") {
        Ending::Misconfigured
    } else if message.starts_with("You have exhausted your") {
        Ending::Limited { resets_at: None }
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
