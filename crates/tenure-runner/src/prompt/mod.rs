//! The agent's prompt: the task, its description and specification, the messages on it, earlier failures, and how to
//! report.
//!
//! Guarantees: [`render`] is a pure function; all untrusted text is fenced as data, escaped and bounded; an unknown
//! placeholder is an error that names it. The prompt contains no lease, fence or environment variable: the agent has
//! those in its environment.

mod fence;
mod setback;
mod source;

use tenure_core::store::Message;
use tenure_core::task::Task;

use crate::spec_section::{SpecError, SpecText};
use crate::template::{Piece, pieces};
use fence::{NONE, block, inline};

pub use setback::{Setback, SetbackKind, setbacks};
pub use source::{TemplateError, template};

/// The built-in template for working on a task.
pub const WORK: &str = include_str!("work.md");
/// The built-in template for reviewing one.
pub const REVIEW: &str = include_str!("review.md");

/// The prompt for an agent that continues its conversation, which already contains the task.
pub fn go_on(key: &str, left: &[Message]) -> String {
    let left = match left {
        [] => String::new(),
        left => format!("Messages on the task:\n\n{}\n\n", messages(left)),
    };
    format!(
        "Your work on task {key} was interrupted, and no command that you have started is still running. Check what is\n\
         already done, and continue where you stopped.\n\n{left}{}\n",
        report(key, Role::Work)
    )
}

/// Precedes the prompt of an agent whose earlier conversation about the task is lost.
pub fn recap(last_message: Option<&str>) -> String {
    let said = last_message.map_or_else(String::new, |message| {
        format!("The last message of that conversation:\n\n{}\n\n", block("text", message, MAX_MESSAGE, 0))
    });
    format!(
        "An earlier conversation about this task was interrupted and is lost. Check first what it has already changed.\n\n{said}"
    )
}

/// The prompt for an agent that has ended without a report.
pub fn ask(key: &str) -> String {
    format!(
        "You ended without a report on task {key}. Do not work on it any further. Report its result now:\n\n{}\n",
        report(key, Role::Work)
    )
}

const MAX_DESCRIPTION: usize = 64 * 1024;
const MAX_DIFF: usize = 192 * 1024;
const MAX_MESSAGE: usize = 8 * 1024;
/// Only this many of the newest are included.
const MAX_MESSAGES: usize = 20;
const MAX_SETBACKS: usize = 10;

const PLACEHOLDERS: &[&str] = &[
    "task.key",
    "task.id",
    "task.title",
    "task.description",
    "task.section",
    "task.source",
    "task.labels",
    "spec",
    "messages",
    "history",
    "diff",
    "report",
];

/// The data that a prompt can contain.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    pub task: &'a Task,
    /// The text that `sourceFile` refers to, or why it could not be read; `None` if the task has no source.
    pub spec: Option<Result<&'a SpecText, &'a SpecError>>,
    pub messages: &'a [Message],
    pub setbacks: &'a [Setback],
    pub role: Role<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum Role<'a> {
    Work,
    /// With the change since the task began, if known.
    Review {
        diff: Option<&'a str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prompt template has an unknown placeholder {{{{{name}}}}}; there are {}", PLACEHOLDERS.join(", "))]
pub struct UnknownPlaceholder {
    pub name: String,
}

/// Renders the prompt.
pub fn render(template: &str, brief: &Brief<'_>) -> Result<String, UnknownPlaceholder> {
    let mut out = String::with_capacity(template.len() + 1024);
    for piece in pieces(template) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Placeholder(name) => {
                out.push_str(
                    &value(name, brief).ok_or_else(|| UnknownPlaceholder { name: name.to_owned() })?,
                );
            }
            // A prompt does not expand environment variables.
            Piece::Variable(name) => {
                out.push_str("${");
                out.push_str(name);
                out.push('}');
            }
        }
    }
    Ok(out)
}

fn value(name: &str, brief: &Brief<'_>) -> Option<String> {
    let task = brief.task;
    Some(match name {
        "task.key" => task.key.clone(),
        "task.id" => task.id.to_string(),
        "task.title" => inline(&task.title),
        "task.description" => block("text", &task.description, MAX_DESCRIPTION, 0),
        "task.section" => inline(task.section.as_ref().map_or("", |section| &section.name)),
        "task.source" => inline(task.source_file.as_deref().unwrap_or_default()),
        "task.labels" => inline(&task.labels.join(", ")),
        "spec" => match brief.spec {
            None => NONE.to_owned(),
            Some(Ok(spec)) => block("markdown", &spec.text, usize::MAX, spec.cut),
            Some(Err(error)) => format!("It could not be read: {}", inline(&error.to_string())),
        },
        "messages" => messages(brief.messages),
        "history" => history(brief.setbacks),
        "diff" => match brief.role {
            Role::Work => return None,
            Role::Review { diff: None } => "It is not known; check the files and their history.".to_owned(),
            Role::Review { diff: Some(diff) } => block("diff", diff, MAX_DIFF, 0),
        },
        "report" => report(&task.key, brief.role),
        _ => return None,
    })
}

fn messages(messages: &[Message]) -> String {
    let said = |message: &Message| {
        let (from, at) = (inline(&message.from), message.sent_at.to_seconds());
        format!("From {from}, {at}:\n{}", block("text", &message.text, MAX_MESSAGE, 0))
    };
    list(messages.len(), MAX_MESSAGES, messages.iter().map(said))
}

fn history(setbacks: &[Setback]) -> String {
    let said = |setback: &Setback| {
        let (kind, by, at) = (setback.kind.as_str(), inline(&setback.actor), setback.at.to_seconds());
        format!("{at}, {kind} by {by}:\n{}", block("text", &setback.remark, MAX_MESSAGE, 0))
    };
    list(setbacks.len(), MAX_SETBACKS, setbacks.iter().map(said))
}

/// The last `limit` items, because the newest matter most.
fn list(total: usize, limit: usize, items: impl Iterator<Item = String>) -> String {
    if total == 0 {
        return NONE.to_owned();
    }
    let left_out = total.saturating_sub(limit);
    let mut parts = Vec::new();
    if left_out > 0 {
        parts.push(format!("({left_out} earlier ones were left out)"));
    }
    parts.extend(items.skip(left_out));
    parts.join("\n\n")
}

fn report(key: &str, role: Role<'_>) -> String {
    match role {
        Role::Work => format!(
            "End with the command that applies:\n\
             - `tenure task done {key}`: the task is done.\n\
             - `tenure task fail {key} -m 'why'`: it cannot be done.\n\
             - `tenure task release {key} -m 'why'`: another worker should continue.\n\
             \n\
             If you cannot run them, call the tool `finish_task` of the MCP server tenure if you have it, or make the last\n\
             line of your last message `TENURE-RESULT: done` or `TENURE-RESULT: failed REASON`. Without a report the task\n\
             is not done.\n\
             \n\
             While you work:\n\
             - `tenure msg send --task {key} -m 'text'`: leave a message for the next holder.\n\
             - `tenure task renew {key}`: extend the lease. The runner does this for you while you run.\n\
             \n\
             Exit code 8 from any of them means that you no longer hold the task: stop working on it."
        ),
        Role::Review { .. } => format!(
            "End with one of these commands:\n\
             - `tenure task approve {key}`: it does what was asked for.\n\
             - `tenure task reject {key} -m 'what is missing'`: it does not. Say exactly what has to change.\n\
             \n\
             If you use none of them, exit code 0 approves and any other rejects."
        ),
    }
}

#[cfg(test)]
mod tests;
