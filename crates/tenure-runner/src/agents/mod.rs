//! The agent programs whose output is understood: the meaning of a line, and of the way a program ends.
//!
//! Each program has a module with a pure `parse(line)` and a pure `conclude(exit, observed)`. An ending is concluded
//! only from a program's error and result events, its standard error and its exit code, never from the text of
//! messages or tools. A line that is not understood changes nothing, and an ending that is not recognised is
//! [`Ending::Unclassified`], so a newer version of a program is at worst treated like an unknown program.

mod claude;
mod codex;
mod gemini;
mod opencode;

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tenure_core::Timestamp;

/// Usage limits reset within a month. A later reset is a misread number.
const FURTHEST_RESET: Duration = Duration::from_hours(31 * 24);

/// An agent program whose output is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKind {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// The meaning of one line of an agent's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The model has answered or a tool has run: earlier errors were overcome.
    Progress,
    /// A request failed for this reason, and the program retries it.
    Retrying(Ending),
    /// A usage limit was reached that resets at this time. The program may still continue, for example with paid
    /// usage.
    LimitReached { resets_at: Option<Timestamp> },
    /// The program gives up for this reason.
    Failed(Ending),
    /// The program reports success.
    Succeeded,
    /// Anything else, including lines that are not understood.
    Other,
}

/// Why an agent's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It exited with 0 and reported no error.
    Done,
    /// A usage or rate limit, with the time of its reset if the program printed one.
    Limited { resets_at: Option<Timestamp> },
    /// The provider is at capacity or fails.
    Overloaded,
    /// The provider could not be reached.
    NoNetwork,
    /// The account has no credit, or its plan does not include this use.
    NoCredit,
    /// The login or key is missing, expired or refused.
    NotLoggedIn,
    /// The model or an option is not known to the program or its provider.
    Misconfigured,
    /// The task itself cannot be done this way, for example because its prompt is too long.
    TaskError,
    /// Not recognised.
    Unclassified,
}

impl Ending {
    /// Why no task could have been worked on, as a sentence for people. `None` if the task itself may be the cause.
    pub fn obstacle(self, agent: AgentKind) -> Option<String> {
        let name = agent.name();
        Some(match self {
            Self::Limited { resets_at: Some(at) } => {
                format!("{name} reports a usage limit until {}", at.to_seconds())
            }
            Self::Limited { resets_at: None } => format!("{name} reports a usage limit"),
            Self::Overloaded => format!("{name} reports that its provider is overloaded"),
            Self::NoNetwork => format!("{name} cannot reach its provider over the network"),
            Self::NoCredit => format!("{name} reports that its account has no credit for this"),
            Self::NotLoggedIn => format!("{name} is not logged in, or its key was refused"),
            Self::Done | Self::Misconfigured | Self::TaskError | Self::Unclassified => return None,
        })
    }

    /// The time of the reset, if known.
    pub fn resets_at(self) -> Option<Timestamp> {
        match self {
            Self::Limited { resets_at } => resets_at,
            _ => None,
        }
    }

    /// Drops a reset time that is past or implausibly far away.
    #[must_use]
    pub fn with_plausible_reset(self, now: Timestamp) -> Self {
        match self {
            Self::Limited { resets_at } => Self::Limited {
                resets_at: resets_at.filter(|at| *at > now && at.since(now) <= FURTHEST_RESET),
            },
            other => other,
        }
    }
}

/// The state accumulated from a run's events. Its size does not grow with the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    /// Why the program gave up, unless it made progress after that.
    failed: Option<Ending>,
    /// Why the last request failed, unless the program made progress after that.
    retrying: Option<Ending>,
    /// When the reached usage limit resets.
    resets_at: Option<Timestamp>,
}

impl Observed {
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Progress | Event::Succeeded => *self = Self::default(),
            Event::Retrying(why) => self.retrying = Some(why),
            Event::LimitReached { resets_at } => self.resets_at = resets_at,
            // The previous line may have been more specific.
            Event::Failed(Ending::Unclassified) => {
                self.failed.get_or_insert(Ending::Unclassified);
            }
            Event::Failed(why) => self.failed = Some(why),
            Event::Other => {}
        }
    }

    /// The rule that all programs share. `exit` is `None` for a program that did not end by itself.
    fn conclude(&self, exit: Option<i32>) -> Ending {
        match (self.failed, self.retrying) {
            (Some(Ending::Limited { resets_at }), _) => {
                Ending::Limited { resets_at: resets_at.or(self.resets_at) }
            }
            (Some(failed), _) => failed,
            (None, _) if exit == Some(0) => Ending::Done,
            (None, Some(retrying)) => retrying,
            (None, None) => Ending::Unclassified,
        }
    }
}

impl AgentKind {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// Determines the agent by the program's file name.
    pub fn of_program(program: &Path) -> Option<Self> {
        let name = program.file_name().and_then(OsStr::to_str)?;
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Parses a line of its output.
    pub fn parse(self, line: &str) -> Event {
        match self {
            Self::Claude => claude::parse(line),
            Self::Codex => codex::parse(line),
            Self::Gemini => gemini::parse(line),
            Self::Opencode => opencode::parse(line),
        }
    }

    /// Concludes why it ended. `exit` is `None` for a program that did not end by itself.
    pub fn conclude(self, exit: Option<i32>, observed: &Observed) -> Ending {
        match self {
            Self::Claude => claude::conclude(exit, observed),
            Self::Codex => codex::conclude(exit, observed),
            Self::Gemini => gemini::conclude(exit, observed),
            Self::Opencode => opencode::conclude(exit, observed),
        }
    }
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

/// The HTTP status at a JSON pointer.
fn status(value: &Value, pointer: &str) -> Option<u16> {
    value.pointer(pointer).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
}

/// The meaning of the provider's HTTP status, equal for all providers.
fn by_status(status: u16) -> Ending {
    match status {
        401 | 403 => Ending::NotLoggedIn,
        402 => Ending::NoCredit,
        429 => Ending::Limited { resets_at: None },
        500..=599 => Ending::Overloaded,
        _ => Ending::Unclassified,
    }
}

/// Interprets the number at the beginning of a text as an HTTP status.
fn by_leading_status(text: &str) -> Ending {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().map_or(Ending::Unclassified, by_status)
}
