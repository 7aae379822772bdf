//! Amp with `--stream-json`, whose events are those of Claude Code. Not tested: from its documentation.

use super::{Agent, PromptInput, claude, unlimited};

pub(super) const AGENT: Agent = Agent {
    name: "amp",
    program: "amp",
    args: |access| unlimited(access, &["--execute", "--stream-json", "--dangerously-allow-all"]),
    env: |_| Vec::new(),
    is_sandboxed: false,
    login: None,
    prompt: PromptInput::Stdin,
    tested: false,
    parse: claude::parse,
    conclude: claude::conclude,
    begin: None,
    stored: None,
    resume: Some(|args, conversation| {
        let words = ["threads", "continue", conversation].map(str::to_owned);
        [&words[..], args].concat()
    }),
};
