//! The meaning of a line of an agent's output, and the summary of a run.

use tenure_core::{Ending, Usage};

use super::Reset;

/// The longest text of an event that is kept in a summary, in bytes.
const LONGEST_TEXT: usize = 2048;
/// How much of the end of the final message is kept, in bytes: its last line may be the agent's report.
const FINAL_MESSAGE: usize = 8192;

/// The meaning of one line of an agent's output, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The conversation has begun or was resumed.
    Started {
        conversation: Option<String>,
        model: Option<String>,
        version: Option<String>,
    },
    /// The model says something.
    Message(String),
    /// A further part of what the model says.
    MessagePart(String),
    /// The model calls a tool. Contains the most informative part of the tool's input.
    ToolBegun {
        name: String,
        input: String,
    },
    ToolEnded {
        failed: bool,
        output: String,
    },
    /// Anything else that shows that the model answers.
    Progress,
    Usage(UsageScope, Usage),
    /// A request failed for this reason, and the program retries it.
    Retrying {
        why: Ending,
        message: String,
    },
    /// A usage limit was reached. The program may still continue, for example with paid usage.
    Limit {
        kind: Option<String>,
        reset: Option<Reset>,
    },
    /// The program was denied the use of something.
    Denied(String),
    /// The program gives up for this reason.
    Failed {
        why: Ending,
        message: String,
    },
    /// The program reports success, with its final message if that is part of the report.
    Succeeded(Option<String>),
}

/// What the numbers of a usage event cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageScope {
    /// One request. Several events with the same name are about the same one.
    Request(Option<String>),
    /// The process so far.
    Process,
    /// The conversation so far, including earlier processes.
    Conversation,
}

/// The state accumulated from a run's events. Its size is bounded, no matter how much the run prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub conversation: Option<String>,
    pub model: Option<String>,
    pub version: Option<String>,
    /// The end of the last message.
    pub final_message: Option<String>,
    /// The model has answered at least once.
    pub answered: bool,
    /// The first thing that the program was denied.
    pub denied: Option<String>,
    /// Why the program gave up, unless it made progress after that.
    pub(super) failed: Option<(Ending, String)>,
    /// Why the last request failed, unless the program made progress after that.
    pub(super) retrying: Option<(Ending, String)>,
    /// When the reached usage limit resets.
    pub(super) reset: Option<Reset>,
    pub(super) succeeded: bool,
    pub(super) limited: bool,
    /// The last event was a part of a message.
    within_message: bool,
    requests: Usage,
    last_request: Option<String>,
    process: Option<Usage>,
    thread: Option<Usage>,
}

/// What an agent used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunUsage {
    /// In this run.
    Run(Usage),
    /// In the conversation, including earlier runs.
    Conversation(Usage),
}

impl RunUsage {
    /// What this run has used. `before`: what earlier runs have used in its conversation.
    pub fn of_this_run(self, before: Usage) -> Usage {
        match self {
            Self::Run(usage) => usage,
            // A total that is smaller than before cannot cover the whole conversation.
            Self::Conversation(total) if total.covers(before) => total.since(before),
            Self::Conversation(total) => total,
        }
    }
}

impl Summary {
    pub fn add(&mut self, event: Event) {
        let within = std::mem::replace(&mut self.within_message, matches!(event, Event::MessagePart(_)));
        match event {
            Event::Started { conversation, model, version } => {
                self.conversation = conversation.filter(|name| is_name(name)).or(self.conversation.take());
                self.model = model.map(|text| shortened(&text)).or(self.model.take());
                self.version = version.map(|text| shortened(&text)).or(self.version.take());
            }
            Event::Message(text) => {
                self.progress();
                if !text.trim().is_empty() {
                    self.final_message = Some(end_of(&text));
                }
            }
            Event::MessagePart(text) => {
                self.progress();
                let before = self.final_message.take().filter(|_| within).unwrap_or_default();
                self.final_message = Some(end_of(&(before + &text)));
            }
            Event::ToolBegun { .. } | Event::ToolEnded { .. } | Event::Progress => self.progress(),
            Event::Usage(scope, usage) => self.count(scope, usage),
            Event::Retrying { why, message } => self.retrying = Some((why, shortened(&message))),
            Event::Limit { reset, .. } => {
                self.limited = true;
                self.reset = reset;
            }
            Event::Denied(what) => {
                self.denied.get_or_insert_with(|| shortened(&what));
            }
            // An earlier error may have been more specific, for example 400 after a typed error.
            Event::Failed { why: Ending::Unclassified, message } if self.failed.is_some() => {
                self.say_why(&message);
            }
            // Missing credit is often reported with the status of a limit or of a refused login.
            Event::Failed { why: Ending::Limited | Ending::NotLoggedIn, message }
                if matches!(self.failed, Some((Ending::NoCredit, _))) =>
            {
                self.say_why(&message);
            }
            Event::Failed { why, message } => {
                let before = self.failed.take().map(|(_, message)| message).unwrap_or_default();
                self.failed = Some((why, before));
                self.say_why(&message);
                self.succeeded = false;
            }
            Event::Succeeded(message) => {
                // A program that is ended while it waits for its provider may still report success.
                let retrying = self.retrying.take();
                self.progress();
                self.retrying = retrying;
                self.succeeded = true;
                if let Some(text) = message.filter(|text| !text.trim().is_empty()) {
                    self.final_message = Some(end_of(&text));
                }
            }
        }
    }

    /// What the run has used, as far as it was printed.
    pub fn usage(&self) -> Option<RunUsage> {
        let requests = (self.requests != Usage::default()).then_some(RunUsage::Run(self.requests));
        self.process.map(RunUsage::Run).or(self.thread.map(RunUsage::Conversation)).or(requests)
    }

    /// The program waits for its provider.
    pub fn is_retrying(&self) -> bool {
        self.retrying.is_some()
    }

    /// The model has answered or a tool has run: earlier errors were overcome.
    fn progress(&mut self) {
        self.answered = true;
        self.failed = None;
        self.retrying = None;
        self.limited = false;
        self.reset = None;
        self.succeeded = false;
    }

    /// Keeps the last non-empty message about why the program gave up.
    fn say_why(&mut self, message: &str) {
        if let Some((_, kept)) = &mut self.failed
            && !message.trim().is_empty()
        {
            *kept = shortened(message);
        }
    }

    fn count(&mut self, scope: UsageScope, usage: Usage) {
        match scope {
            UsageScope::Request(name) => {
                if name.is_none() || name != self.last_request {
                    self.requests = self.requests.plus(usage);
                }
                self.last_request = name.map(|name| shortened(&name));
            }
            UsageScope::Process => self.process = Some(usage),
            UsageScope::Conversation => self.thread = Some(usage),
        }
    }
}

/// The name of a conversation becomes an argument, so it must not look like an option.
fn is_name(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    plain && !text.starts_with('-') && (1..=128).contains(&text.len())
}

/// The beginning of a text.
fn shortened(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The end of a text.
fn end_of(text: &str) -> String {
    let mut start = text.len().saturating_sub(FINAL_MESSAGE);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_conversation_that_looks_like_an_option_is_ignored() {
        for (name, accepted) in
            [("5f1c-a", true), ("ses_1.b", true), ("--dangerous", false), ("a b", false), ("", false)]
        {
            let mut summary = Summary::default();
            let conversation = Some(name.to_owned());
            summary.add(Event::Started { conversation, model: None, version: None });
            assert_eq!(summary.conversation.is_some(), accepted, "{name}");
        }
    }

    #[test]
    fn the_size_of_a_summary_is_bounded() {
        let mut summary = Summary::default();
        let long = "é".repeat(1_000_000);
        for _ in 0..100 {
            summary.add(Event::Message(long.clone()));
            summary.add(Event::Denied(long.clone()));
            summary.add(Event::Failed { why: Ending::Limited, message: long.clone() });
            summary.add(Event::Retrying { why: Ending::Limited, message: long.clone() });
        }
        assert!(format!("{summary:?}").len() < 4 * (LONGEST_TEXT + FINAL_MESSAGE));
    }

    #[test]
    fn success_after_a_failed_request_is_no_progress() {
        let mut summary = Summary::default();
        summary.add(Event::Retrying { why: Ending::NoNetwork, message: String::new() });
        summary.add(Event::Succeeded(None));
        assert!(summary.is_retrying() && summary.succeeded);
        summary.add(Event::Message("Hello".to_owned()));
        assert!(!summary.is_retrying());
    }

    #[test]
    fn a_request_that_is_printed_twice_is_counted_once() {
        let usage = |tokens| Usage { input_tokens: tokens, ..Usage::default() };
        let mut summary = Summary::default();
        for (name, tokens) in [("m1", 5), ("m1", 5), ("m2", 7)] {
            summary.add(Event::Usage(UsageScope::Request(Some(name.to_owned())), usage(tokens)));
        }
        assert_eq!(summary.usage(), Some(RunUsage::Run(usage(12))));
        summary.add(Event::Usage(UsageScope::Process, usage(20)));
        assert_eq!(summary.usage(), Some(RunUsage::Run(usage(20))));
    }
}
