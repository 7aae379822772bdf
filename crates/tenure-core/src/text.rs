//! Limits on user-supplied text, and escaping it for display.
//!
//! Guarantees: text that passes a check here fits the columns of the store and contains no NUL; the result of
//! [`escape_line`], [`escape_block`] or [`escape_json`] cannot move the cursor, colour the terminal, or reorder or hide other text.
//! Not guaranteed: that escaping can be undone (a backslash is shown unchanged, so `\x1b` may also be literal text),
//! that look-alike letters can be distinguished, or any display width.

mod escape;

pub use escape::{escape_block, escape_json, escape_line};

use std::fmt;

use thiserror::Error;

/// The limit for a title, a section's name or a label, in characters.
pub const MAX_TITLE_CHARS: usize = 500;
/// The limit for a description or a message, in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// The limit for a task key, in characters.
pub const MAX_KEY_CHARS: usize = 64;
/// The limit for an agent's id, in characters.
pub const MAX_AGENT_CHARS: usize = 64;
/// The limit for `sourceFile`, in characters: the longest path on Linux.
pub const MAX_SOURCE_FILE_CHARS: usize = 4096;

/// The field that was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    Title,
    Description,
    Message,
    TaskKey,
    AgentId,
    Section,
    Label,
    SourceFile,
    Name,
    Capability,
    JobName,
}

impl Field {
    pub fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::Message => "message",
            Self::TaskKey => "task key",
            Self::AgentId => "agent id",
            Self::Section => "section name",
            Self::Label => "label",
            Self::SourceFile => "source file",
            Self::Name => "name",
            Self::Capability => "capability",
            Self::JobName => "job's name",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    Characters,
    Bytes,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Characters => "characters",
            Self::Bytes => "bytes",
        })
    }
}

/// Why a text was rejected. The messages do not quote the text, which may be very long.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    #[error("the {field} is empty")]
    Empty { field: Field },
    #[error("the {field} has {actual} {unit}; the limit is {limit}")]
    TooLong { field: Field, limit: usize, actual: usize, unit: Unit },
    #[error("the {field} contains a NUL character")]
    Nul { field: Field },
    #[error("the {field} contains {found:?}; allowed: {allowed}")]
    Character { field: Field, found: char, allowed: &'static str },
}

impl TextError {
    pub fn field(&self) -> Field {
        match *self {
            Self::Empty { field }
            | Self::TooLong { field, .. }
            | Self::Nul { field }
            | Self::Character { field, .. } => field,
        }
    }
}

/// A stable hash of the text (FNV-1a). It detects accidental changes, not deliberate ones.
pub fn fingerprint(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Not blank, at most [`MAX_TITLE_CHARS`] characters, any character but NUL.
pub fn check_title(text: &str) -> Result<(), TextError> {
    check_name(Field::Title, text, MAX_TITLE_CHARS)
}

/// A section's name follows the rule for titles.
pub fn check_section(text: &str) -> Result<(), TextError> {
    check_name(Field::Section, text, MAX_TITLE_CHARS)
}

/// A label follows the rule for titles.
pub fn check_label(text: &str) -> Result<(), TextError> {
    check_name(Field::Label, text, MAX_TITLE_CHARS)
}

/// The display name of an agent or a project follows the rule for titles.
pub fn check_display_name(text: &str) -> Result<(), TextError> {
    check_name(Field::Name, text, MAX_TITLE_CHARS)
}

/// A capability of an agent follows the rule for titles.
pub fn check_capability(text: &str) -> Result<(), TextError> {
    check_name(Field::Capability, text, MAX_TITLE_CHARS)
}

/// `FILE` or `FILE#anchor`: not blank, no NUL, no longer than a path may be.
pub fn check_source_file(text: &str) -> Result<(), TextError> {
    check_name(Field::SourceFile, text, MAX_SOURCE_FILE_CHARS)
}

/// At most [`MAX_BODY_BYTES`] bytes, any character but NUL; may be empty.
pub fn check_description(text: &str) -> Result<(), TextError> {
    check_body(Field::Description, text)
}

/// The same rule as for a description.
pub fn check_message(text: &str) -> Result<(), TextError> {
    check_body(Field::Message, text)
}

/// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
pub fn check_task_key(text: &str) -> Result<(), TextError> {
    check_key(Field::TaskKey, text)
}

/// The same rule as for a task's key.
pub fn check_job_name(text: &str) -> Result<(), TextError> {
    check_key(Field::JobName, text)
}

fn check_key(field: Field, text: &str) -> Result<(), TextError> {
    check_word(field, text, MAX_KEY_CHARS, "letters, digits, `.`, `_`, `-`", |c| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
    })?;
    match text.chars().next() {
        Some(found) if !found.is_ascii_alphanumeric() => {
            Err(TextError::Character { field, found, allowed: "a letter or digit at the start" })
        }
        _ => Ok(()),
    }
}

/// `[A-Za-z0-9._@:/-]{1,64}`.
pub fn check_agent_id(text: &str) -> Result<(), TextError> {
    check_word(Field::AgentId, text, MAX_AGENT_CHARS, "letters, digits, `.`, `_`, `@`, `:`, `/`, `-`", |c| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | ':' | '/' | '-')
    })
}

fn check_name(field: Field, text: &str, limit: usize) -> Result<(), TextError> {
    if text.trim().is_empty() {
        return Err(TextError::Empty { field });
    }
    check_length(field, text, limit)?;
    check_nul(field, text)
}

fn check_body(field: Field, text: &str) -> Result<(), TextError> {
    if text.len() > MAX_BODY_BYTES {
        let (limit, actual) = (MAX_BODY_BYTES, text.len());
        return Err(TextError::TooLong { field, limit, actual, unit: Unit::Bytes });
    }
    check_nul(field, text)
}

fn check_word(
    field: Field,
    text: &str,
    limit: usize,
    allowed: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty { field });
    }
    check_length(field, text, limit)?;
    match text.chars().find(|&c| !is_allowed(c)) {
        Some(found) => Err(TextError::Character { field, found, allowed }),
        None => Ok(()),
    }
}

fn check_length(field: Field, text: &str, limit: usize) -> Result<(), TextError> {
    if text.len() <= limit {
        return Ok(());
    }
    let actual = text.chars().count();
    if actual <= limit {
        return Ok(());
    }
    Err(TextError::TooLong { field, limit, actual, unit: Unit::Characters })
}

fn check_nul(field: Field, text: &str) -> Result<(), TextError> {
    if text.contains('\0') { Err(TextError::Nul { field }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
