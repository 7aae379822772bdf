//! Amp with `--stream-json`, whose events are those of Claude Code. Not tested: from its documentation.

use super::{Agent, PromptInput, claude};

pub(super) const AGENT: Agent = Agent {
    name: "amp",
    command: &["amp", "--execute", "--stream-json", "--dangerously-allow-all"],
    env: &[],
    prompt: PromptInput::Stdin,
    tested: false,
    parse: claude::parse,
    conclude: claude::conclude,
    resume: Some(|args, conversation| {
        let words = ["threads", "continue", conversation].map(str::to_owned);
        [&words[..], args].concat()
    }),
};
