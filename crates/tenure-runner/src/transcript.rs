//! What an agent did, as readable entries. Memory is bounded by the longest line, regardless of the length of the log.

use tenure_core::{Ending, Timestamp};

use crate::agents::{Agent, CUSTOM, Event};

/// A message that arrives in parts is shown after this many bytes, even if its line has not ended.
const LONGEST_PART: usize = 4096;
/// How much of a tool's output is shown.
const OUTPUT_LINES: usize = 5;
/// The longest line that is shown, in characters.
const SHOWN_CHARS: usize = 300;

/// Turns the lines of an agent's log into entries.
#[derive(Debug)]
pub struct Transcript {
    agent: &'static Agent,
    /// A message that arrives in parts, up to now.
    part: String,
    /// The beginning of the last message, which some agents print a second time with their result.
    last_message: String,
}

/// One thing that an agent did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the agent printed it.
    pub at: Option<Timestamp>,
    pub kind: EntryKind,
    /// The tool that is called.
    pub tool: Option<String>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Started,
    Message,
    Tool,
    Output,
    /// The output of a tool that failed.
    FailedOutput,
    Retrying,
    Limit,
    Denied,
    Error,
    /// The program reports success.
    Result,
    /// A line that is not part of the agent's protocol, for example of its standard error.
    Line,
}

impl EntryKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Message => "message",
            Self::Tool => "tool",
            Self::Output => "output",
            Self::FailedOutput => "failed_output",
            Self::Retrying => "retrying",
            Self::Limit => "limit",
            Self::Denied => "denied",
            Self::Error => "error",
            Self::Result => "result",
            Self::Line => "line",
        }
    }
}

impl Transcript {
    /// `agent`: the name in the attempt's row. The output of an unknown agent is shown as it is.
    pub fn new(agent: Option<&str>) -> Self {
        Self { agent: agent.map_or(CUSTOM, Agent::named), part: String::new(), last_message: String::new() }
    }

    /// The entries of a line of the log.
    pub fn read(&mut self, line: &str) -> Vec<Entry> {
        let (at, printed) = split_time(line);
        self.read_printed(at, printed)
    }

    /// The entries of a line that the agent has printed.
    pub fn read_printed(&mut self, at: Option<Timestamp>, printed: &str) -> Vec<Entry> {
        let mut entries = Vec::new();
        let events = if self.agent.is_known() { self.agent.parse(printed) } else { Vec::new() };
        let is_event = self.agent.is_known()
            && printed.starts_with('{')
            && serde_json::from_str::<serde::de::IgnoredAny>(printed).is_ok();
        if events.is_empty() && !is_event {
            self.end_message(at, &mut entries);
            entries.push(Entry { at, kind: EntryKind::Line, tool: None, text: printed.to_owned() });
        }
        for event in events {
            self.add(at, event, &mut entries);
        }
        entries.retain(|entry| {
            let always = matches!(entry.kind, EntryKind::Tool | EntryKind::FailedOutput);
            always || !entry.text.trim().is_empty()
        });
        entries
    }

    /// The entry of a message whose end was not seen.
    pub fn end(&mut self) -> Option<Entry> {
        let mut entries = Vec::new();
        self.end_message(None, &mut entries);
        entries.pop()
    }

    fn add(&mut self, at: Option<Timestamp>, event: Event, entries: &mut Vec<Entry>) {
        if let Event::MessagePart(text) = event {
            self.part.push_str(&text);
            let whole = if self.part.len() > LONGEST_PART {
                self.part.len()
            } else {
                self.part.rfind('\n').map_or(0, |end| end + 1)
            };
            let said: String = self.part.drain(..whole).collect();
            entries.push(Entry { at, kind: EntryKind::Message, tool: None, text: said });
            return;
        }
        if matches!(event, Event::Usage(..) | Event::Progress) {
            return;
        }
        self.end_message(at, entries);
        let (kind, text) = match event {
            Event::Started { conversation, model, version } => {
                let part = |what: &str, value: Option<String>| value.map(|value| format!("{what} {value}"));
                let parts =
                    [part("conversation", conversation), part("model", model), part("version", version)];
                (EntryKind::Started, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
            Event::Message(text) => {
                self.last_message = text.chars().take(SHOWN_CHARS).collect();
                (EntryKind::Message, text)
            }
            Event::ToolBegun { name, input } => {
                entries.push(Entry { at, kind: EntryKind::Tool, tool: Some(name), text: input });
                return;
            }
            Event::ToolEnded { failed, output } => {
                (if failed { EntryKind::FailedOutput } else { EntryKind::Output }, output)
            }
            Event::Retrying { why, message } => (EntryKind::Retrying, with_reason(why, &message)),
            Event::Limit { kind, reset } => {
                let reset = reset.map(|reset| format!("until {}", reset.label()));
                let parts = [Some("usage limit".to_owned()), kind, reset];
                (EntryKind::Limit, parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
            }
            Event::Denied(what) => (EntryKind::Denied, what),
            Event::Failed { why, message } => (EntryKind::Error, with_reason(why, &message)),
            Event::Succeeded(Some(text)) if !self.is_last_message(&text) => (EntryKind::Result, text),
            Event::Succeeded(_) | Event::MessagePart(_) | Event::Usage(..) | Event::Progress => return,
        };
        entries.push(Entry { at, kind, tool: None, text });
    }

    fn is_last_message(&self, text: &str) -> bool {
        text.chars().take(SHOWN_CHARS).eq(self.last_message.chars())
    }

    fn end_message(&mut self, at: Option<Timestamp>, entries: &mut Vec<Entry>) {
        if !self.part.is_empty() {
            let text = std::mem::take(&mut self.part);
            entries.push(Entry { at, kind: EntryKind::Message, tool: None, text });
        }
    }
}

fn with_reason(why: Ending, message: &str) -> String {
    if message.trim().is_empty() { why.to_string() } else { format!("{why}: {message}") }
}

impl Entry {
    /// The lines for people. Long lines are cut, and so is the output of tools. The text is not escaped.
    pub fn lines(&self) -> Vec<String> {
        let text = without_colours(&self.text);
        let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        match self.kind {
            EntryKind::Tool => {
                let tool = self.tool.as_deref().unwrap_or_default();
                let more = if lines.next().is_some() { " …" } else { "" };
                let call = if first.is_empty() { tool.to_owned() } else { format!("{tool}: {first}{more}") };
                vec![format!("→ {}", shortened(&call))]
            }
            EntryKind::Output | EntryKind::FailedOutput => {
                let failed = self.kind == EntryKind::FailedOutput;
                let mut shown: Vec<String> = failed.then(|| "  failed".to_owned()).into_iter().collect();
                let mut all = std::iter::once(first).chain(lines).filter(|line| !line.is_empty());
                shown.extend(all.by_ref().take(OUTPUT_LINES).map(|line| format!("  {}", shortened(line))));
                match all.count() {
                    0 => {}
                    1 => shown.push("  … 1 more line".to_owned()),
                    more => shown.push(format!("  … {more} more lines")),
                }
                shown
            }
            EntryKind::Message | EntryKind::Result => {
                std::iter::once(first).chain(lines).map(str::to_owned).collect()
            }
            EntryKind::Line | EntryKind::Started => vec![shortened(first)],
            kind => vec![shortened(&format!("{}: {first}", kind.as_str()))],
        }
    }
}

/// `[TIME] REST`, as the lines of a log are written.
pub fn split_time(line: &str) -> (Option<Timestamp>, &str) {
    let parts = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let empty = || line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(|time| (time, ""));
    match parts.or_else(empty).map(|(time, rest)| (Timestamp::parse(time), rest)) {
        Some((Some(at), rest)) => (Some(at), rest),
        _ => (None, line),
    }
}

fn shortened(line: &str) -> String {
    let mut chars = line.chars();
    let mut shown: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// The text without the sequences that colour a terminal and move its cursor, and with spaces for tabs. Other control
/// characters stay.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\u{1b}[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| ('@'..='~').contains(&c));
        plain.push_str(end.and_then(|end| piece.get(end + 1..)).unwrap_or_default());
    }
    plain.replace('\t', "    ")
}

#[cfg(test)]
mod tests;
