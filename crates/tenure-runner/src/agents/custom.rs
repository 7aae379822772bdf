//! A program whose output format is not known: only its exit code tells how it ended.

use tenure_core::Ending;

use super::{Agent, Event, ProcessEnd, PromptInput, Summary, object, optional};

pub(super) const AGENT: Agent = Agent {
    name: "the agent",
    program: "",
    args: |_| Ok(Vec::new()),
    env: |_| Vec::new(),
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: true,
    parse,
    conclude,
    begin: None,
    stored: None,
    resume: None,
};

/// Many programs print the name of their conversation in a field with one of these names.
pub(super) fn parse(line: &str) -> Vec<Event> {
    let Some(value) = object(line) else { return Vec::new() };
    let conversation = optional(&value, "/session_id").or_else(|| optional(&value, "/thread_id"));
    let started =
        conversation.map(|name| Event::Started { conversation: Some(name), model: None, version: None });
    started.into_iter().collect()
}

pub(super) fn conclude(end: ProcessEnd, _: &Summary) -> Ending {
    match end {
        ProcessEnd::Exited(0) => Ending::Done,
        ProcessEnd::Exited(_) => Ending::Unclassified,
        ProcessEnd::Killed => Ending::Crashed,
        ProcessEnd::Hung => Ending::Hung,
        ProcessEnd::TimedOut => Ending::TimedOut,
        ProcessEnd::Stopped => Ending::Stopped,
        ProcessEnd::LeaseLost => Ending::LeaseLost,
    }
}
