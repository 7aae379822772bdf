//! opencode: `run` prints an error as one coloured line, `run --format json` as a typed event.
//!
//! In the first format the model's output is printed unchanged, so nothing is concluded about a run that exits with
//! 0.

use super::{Ending, Event, Observed, by_status, object, status, text};

/// The beginning of the line that reports a fatal error.
const ERROR: &str = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0m";

/// Parts of the providers' messages, in lower case. The first match counts.
const PARTS: &[(&str, Ending)] = &[
    ("exceeded your current quota", Ending::NoCredit),
    ("credit balance", Ending::NoCredit),
    ("insufficient credits", Ending::NoCredit),
    ("insufficient balance", Ending::NoCredit),
    ("rate limit", Ending::Limited { resets_at: None }),
    ("usage limit", Ending::Limited { resets_at: None }),
    ("too many requests", Ending::Limited { resets_at: None }),
    ("api key", Ending::NotLoggedIn),
    ("unauthorized", Ending::NotLoggedIn),
    ("forbidden", Ending::NotLoggedIn),
    ("overloaded", Ending::Overloaded),
    ("internal server error", Ending::Overloaded),
    ("the server had an error", Ending::Overloaded),
    ("service unavailable", Ending::Overloaded),
    ("bad gateway", Ending::Overloaded),
    ("cannot connect to api", Ending::NoNetwork),
    ("unable to connect", Ending::NoNetwork),
];

pub(super) fn parse(line: &str) -> Event {
    if let Some(message) = line.strip_prefix(ERROR) {
        return Event::Failed(by_message(message));
    }
    // Every event of the second format names its session; JSON printed by the model in the first one does not.
    let Some(value) = object(line).filter(|value| !text(value, "/sessionID").is_empty()) else {
        return Event::Other;
    };
    match text(&value, "/type") {
        "error" => Event::Failed(match by_message(text(&value, "/error/data/message")) {
            Ending::Unclassified => {
                status(&value, "/error/data/statusCode").map_or(Ending::Unclassified, by_status)
            }
            known => known,
        }),
        "text" | "tool_use" | "step_finish" => Event::Progress,
        _ => Event::Other,
    }
}

pub(super) fn conclude(exit: Option<i32>, observed: &Observed) -> Ending {
    if exit == Some(0) { Ending::Done } else { observed.conclude(exit) }
}

fn by_message(message: &str) -> Ending {
    let message = message.to_lowercase();
    let known = PARTS.iter().find(|(part, _)| message.contains(part));
    known.map_or(Ending::Unclassified, |(_, ending)| *ending)
}
