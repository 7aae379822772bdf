//! The agent programs that tenure knows: how each is started and resumed, how a line of its output is parsed, and
//! what its ending means.
//!
//! Each program has a module with its [`Agent`]: its arguments, a pure `parse(line)` and a pure `conclude(end, summary)`. An
//! ending is concluded only from a program's error and result events, its standard error and its exit code, never from
//! the text of messages or tools. A line that is not understood changes nothing. An ending that is not recognised is
//! [`Ending::Unclassified`], so a newer version of a program is at worst treated like an unknown failure, and only a
//! recognised result is [`Ending::Done`].

mod access;
mod agy;
mod amp;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod custom;
mod event;
mod gemini;
mod opencode;
mod reset;
mod stored;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;
use tenure_core::config::Permissions;
use tenure_core::{Ending, Timestamp};

pub use access::{Access, AccessError, Place};
pub use event::{Event, RunUsage, Summary, UsageScope};
pub use reset::{LocalNow, Reset};
pub use stored::Variable;

/// The longest sentence that is quoted from a program, in characters.
const LONGEST_SENTENCE: usize = 300;

/// The agents with a built-in preset.
pub const BUILT_IN: &[&Agent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &copilot::AGENT,
    &gemini::AGENT,
    &opencode::AGENT,
    &agy::AGENT,
    &amp::AGENT,
    &cursor::AGENT,
];

/// Any other program, whose output format is not known.
pub const CUSTOM: &Agent = &custom::AGENT;

/// An agent program.
#[derive(Debug, Clone, Copy)]
pub struct Agent {
    pub name: &'static str,
    /// The file name of its program; empty if it is not known.
    pub program: &'static str,
    /// The arguments of its built-in preset.
    args: fn(&Access<'_>) -> Result<Vec<String>, AccessError>,
    /// Added to its environment.
    env: fn(&Access<'_>) -> Vec<(&'static str, String)>,
    /// With [`Permissions::Work`] the operating system keeps its commands from writing outside the project.
    pub is_sandboxed: bool,
    pub login: Option<Login>,
    pub prompt: PromptInput,
    /// Tried with the real program. Otherwise taken from its documentation.
    pub tested: bool,
    parse: fn(&str) -> Vec<Event>,
    conclude: fn(ProcessEnd, &Summary) -> Ending,
    /// Begins a conversation with a name that is chosen by the caller, which is a UUID.
    begin: Option<WithConversation>,
    stored: Option<stored::Stored>,
    resume: Option<WithConversation>,
}

/// How to find out whether a program is logged in, without using the network.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// With these arguments, the program exits with 0 if it is logged in.
    pub check: &'static [&'static str],
    /// The command that logs it in.
    pub command: &'static str,
}

/// From the arguments and the name of a conversation to the arguments that begin or resume it.
type WithConversation = fn(&[String], &str) -> Vec<String>;

/// How a program receives its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptInput {
    Stdin,
    /// As its last argument.
    Argument,
}

/// How an agent's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(i32),
    /// By a signal that its runner did not send.
    Killed,
    /// Ended by its runner: no output, or no progress, for too long.
    Hung,
    /// Ended by its runner after the longest permitted time.
    TimedOut,
    /// Ended because its runner was stopped.
    Stopped,
    /// Ended because its lease was lost.
    LeaseLost,
}

/// Why an agent ended, with what it printed about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    pub ending: Ending,
    /// A sentence for people, as the program printed it.
    pub message: Option<String>,
    /// The reset of a limit, if it is in the future.
    pub resets_at: Option<Timestamp>,
}

impl Conclusion {
    /// What happened, as a sentence that begins with the agent's name.
    pub fn sentence(&self, agent: &Agent) -> String {
        let what = match self.ending {
            Ending::Done => "ended well".to_owned(),
            Ending::GaveUp => "gave up".to_owned(),
            Ending::Unreported => "ended without a report".to_owned(),
            Ending::PermissionDenied => "was denied a permission and ended without a report".to_owned(),
            Ending::Limited => match self.resets_at {
                Some(at) => format!("reports a usage limit until {}", at.to_seconds()),
                None => "reports a usage limit".to_owned(),
            },
            Ending::Overloaded => "reports that its provider is overloaded".to_owned(),
            Ending::NoNetwork => "cannot reach its provider over the network".to_owned(),
            Ending::NoCredit => "reports that its account has no credit for this".to_owned(),
            Ending::NotLoggedIn => "is not logged in, or its key was refused".to_owned(),
            Ending::Misconfigured => "does not accept its model or an option".to_owned(),
            Ending::TaskError => "cannot work on this task".to_owned(),
            Ending::Hung => "printed nothing for too long".to_owned(),
            Ending::TimedOut => "took too long".to_owned(),
            Ending::Stopped => "was stopped".to_owned(),
            Ending::LeaseLost => "lost its lease".to_owned(),
            Ending::Crashed => "was killed".to_owned(),
            Ending::Unclassified => "ended for an unknown reason".to_owned(),
        };
        match &self.message {
            Some(message) => format!("{} {what}: {message}", agent.name),
            None => format!("{} {what}", agent.name),
        }
    }
}

impl Agent {
    /// Determines the agent by the program's file name.
    pub fn of_program(program: &Path) -> &'static Self {
        let name = program.file_name().and_then(OsStr::to_str);
        let known = BUILT_IN.iter().find(|agent| Some(agent.program) == name);
        known.copied().unwrap_or(CUSTOM)
    }

    /// The built-in agent with this name, otherwise [`CUSTOM`].
    pub fn named(name: &str) -> &'static Self {
        BUILT_IN.iter().find(|agent| agent.name == name).copied().unwrap_or(CUSTOM)
    }

    /// Whether its output format is known.
    pub fn is_known(&self) -> bool {
        !self.program.is_empty()
    }

    /// The arguments of its built-in preset.
    pub fn args(&self, access: &Access<'_>) -> Result<Vec<String>, AccessError> {
        (self.args)(access)
    }

    pub fn env(&self, access: &Access<'_>) -> BTreeMap<String, String> {
        (self.env)(access).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Whether the name of its conversation can be chosen before it is started.
    pub fn can_begin(&self) -> bool {
        self.begin.is_some()
    }

    /// The arguments that begin a conversation with this name; unchanged if the name cannot be chosen.
    pub fn beginning(&self, args: &[String], conversation: &str) -> Vec<String> {
        self.begin.map_or_else(|| args.to_vec(), |begin| begin(args, conversation))
    }

    /// Whether the program still has the conversation, looked up in the folders that its environment names;
    /// `None` if that is not known.
    pub fn has_conversation(&self, variable: Variable<'_>, name: &str) -> Option<bool> {
        self.stored.and_then(|stored| stored(variable, name))
    }

    pub fn can_resume(&self) -> bool {
        self.resume.is_some()
    }

    /// The arguments that resume a conversation, if the agent supports it.
    pub fn resuming(&self, args: &[String], conversation: &str) -> Option<Vec<String>> {
        self.resume.map(|resume| resume(args, conversation))
    }

    /// Parses a line of its output. A line may have several meanings, or none.
    pub fn parse(&self, line: &str) -> Vec<Event> {
        (self.parse)(line)
    }

    /// Like [`Self::conclude`], but returns only the ending.
    pub fn ending(&self, end: ProcessEnd, summary: &Summary) -> Ending {
        (self.conclude)(end, summary)
    }

    /// Concludes why it ended. `now` is needed to turn a printed reset into a time.
    pub fn conclude(&self, end: ProcessEnd, summary: &Summary, now: &LocalNow) -> Conclusion {
        let ending = self.ending(end, summary);
        let said = |found: &Option<(Ending, String)>| found.as_ref().map(|(_, message)| message.clone());
        let message = match ending {
            Ending::Done | Ending::Stopped | Ending::LeaseLost => None,
            Ending::PermissionDenied => summary.denied.clone(),
            _ => said(&summary.failed).filter(|said| !said.is_empty()).or_else(|| said(&summary.retrying)),
        };
        let reset = summary.reset.filter(|_| ending == Ending::Limited);
        Conclusion {
            ending,
            message: message.as_deref().and_then(for_people),
            resets_at: reset.and_then(|reset| reset.resolve(now)),
        }
    }
}

/// The arguments of an agent that can only be started with all permissions.
fn unlimited(access: &Access<'_>, args: &[&str]) -> Result<Vec<String>, AccessError> {
    match access.permissions {
        Permissions::Edit => Err(AccessError::NotLimited),
        Permissions::Work | Permissions::Full => Ok(words(args)),
    }
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|&word| word.to_owned()).collect()
}

/// The common rule for programs that print a result event.
fn by_events(end: ProcessEnd, summary: &Summary) -> Ending {
    let known = |found: &Option<(Ending, String)>| {
        found.as_ref().map(|(why, _)| *why).filter(|why| *why != Ending::Unclassified)
    };
    let limited = summary.limited.then_some(Ending::Limited);
    let failed = known(&summary.failed).or(limited);
    let trouble = failed.or_else(|| known(&summary.retrying));
    match end {
        ProcessEnd::Exited(0) if summary.succeeded && summary.denied.is_some() => Ending::PermissionDenied,
        ProcessEnd::Exited(0) if summary.succeeded => Ending::Done,
        ProcessEnd::Exited(0) => failed.unwrap_or(Ending::Unclassified),
        ProcessEnd::Exited(_) => trouble.unwrap_or(Ending::Unclassified),
        ProcessEnd::Killed => trouble.unwrap_or(Ending::Crashed),
        ProcessEnd::Hung => trouble.unwrap_or(Ending::Hung),
        ProcessEnd::TimedOut => trouble.unwrap_or(Ending::TimedOut),
        ProcessEnd::Stopped => Ending::Stopped,
        ProcessEnd::LeaseLost => Ending::LeaseLost,
    }
}

/// The first line of a message, without JSON. `None` if nothing remains.
fn for_people(message: &str) -> Option<String> {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.split_once("{\"").map_or(line, |(before, _)| before).trim_end_matches([' ', ':', '(']);
    let mut shown: String = line.chars().take(LONGEST_SENTENCE).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    (!shown.is_empty() && !shown.starts_with('{')).then_some(shown)
}

/// The JSON object that a line consists of.
fn object(line: &str) -> Option<Value> {
    if !line.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(line).ok()
}

/// The text at a JSON pointer; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, if it is not empty.
fn optional(value: &Value, pointer: &str) -> Option<String> {
    Some(text(value, pointer)).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// An amount of dollars, in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the amount is not negative, and a cast to an integer saturates"
)]
fn micro_usd(value: &Value, pointer: &str) -> Option<u64> {
    let dollars = value.pointer(pointer).and_then(Value::as_f64).filter(|dollars| *dollars >= 0.0)?;
    Some((dollars * 1e6).round() as u64)
}

fn items<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The HTTP status at a JSON pointer.
fn status(value: &Value, pointer: &str) -> Option<u16> {
    value.pointer(pointer).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
}

/// The most informative part of a tool's input.
fn tool_input(input: &Value) -> String {
    let telling = ["command", "file_path", "path", "filePath", "pattern", "url", "query", "description"];
    let found = telling.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    found.map_or_else(|| if input.is_null() { String::new() } else { input.to_string() }, str::to_owned)
}

fn failed(why: Ending, message: &str) -> Event {
    Event::Failed { why, message: message.to_owned() }
}

/// The meaning of the provider's HTTP status, which is the same for all providers.
fn by_status(status: u16) -> Ending {
    match status {
        401 | 403 => Ending::NotLoggedIn,
        402 => Ending::NoCredit,
        404 => Ending::Misconfigured,
        413 => Ending::TaskError,
        429 => Ending::Limited,
        500..=599 => Ending::Overloaded,
        _ => Ending::Unclassified,
    }
}

/// Interprets the number at the beginning of a text as an HTTP status.
fn by_leading_status(text: &str) -> Ending {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().map_or(Ending::Unclassified, by_status)
}

/// Recognises a line of standard error that reports an unknown argument. Must be used only for programs that print
/// nothing but JSON on standard output.
fn unknown_argument(line: &str) -> Option<Event> {
    const BEGINNINGS: &[&str] =
        &["error: unknown option", "error: unexpected argument", "error: invalid value", "Unknown argument"];
    let unknown = BEGINNINGS.iter().any(|beginning| line.starts_with(beginning));
    unknown.then(|| failed(Ending::Misconfigured, line))
}
