//! Codex with `exec --json`: errors are texts, in events that hold nothing else.
//!
//! The texts are those of its error type, so they are compared from their beginning. A usage limit names its reset in
//! local time without a zone, and sometimes without a day, so it is not used.

use super::{Ending, Event, Observed, by_leading_status, object, text};

/// The beginning of an error text, and its meaning.
const BEGINNINGS: &[(&str, Ending)] = &[
    ("You've hit your usage limit", Ending::Limited { resets_at: None }),
    ("Rate limit reached", Ending::Limited { resets_at: None }),
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
    ("Codex ran out of room in the model's context window", Ending::TaskError),
];

pub(super) fn parse(line: &str) -> Event {
    let Some(value) = object(line) else { return Event::Other };
    match text(&value, "/type") {
        "error" => match text(&value, "/message").strip_prefix("Reconnecting...") {
            // `2/5 (why)` or `waiting for network (why)`.
            Some(retry) => {
                let why = retry.split_once('(').map_or(retry, |(_, why)| why);
                Event::Retrying(by_message(why))
            }
            None => Event::Failed(by_message(text(&value, "/message"))),
        },
        "turn.failed" => Event::Failed(by_message(text(&value, "/error/message"))),
        "turn.completed" => Event::Succeeded,
        // A warning, for example about a fallback.
        "item.started" | "item.updated" | "item.completed" if text(&value, "/item/type") == "error" => {
            Event::Other
        }
        "item.started" | "item.updated" | "item.completed" => Event::Progress,
        _ => Event::Other,
    }
}

pub(super) fn conclude(exit: Option<i32>, observed: &Observed) -> Ending {
    observed.conclude(exit)
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
