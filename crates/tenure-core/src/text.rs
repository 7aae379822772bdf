//! The limits of every text that people and agents hand in, and the one way that text is shown.
//!
//! Guarantees: whatever passes a check here fits the store's columns and holds no NUL; whatever [`escape_line`]
//! or [`escape_block`] returns cannot move the cursor, colour the terminal, reorder or hide other text.
//! Not guaranteed: that escaped text can be turned back (a backslash is shown as it is, so `\x1b` may also have
//! been typed), nor that look-alike letters are told apart, nor any width.

mod escape;

pub use escape::{escape_block, escape_line};

use std::fmt;

use thiserror::Error;

/// Characters in a title, a section's name or a label.
pub const MAX_TITLE_CHARS: usize = 500;
/// Bytes in a description or a message.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Characters in a task key.
pub const MAX_KEY_CHARS: usize = 64;
/// Characters in an agent's id.
pub const MAX_AGENT_CHARS: usize = 64;
/// Characters in `sourceFile`: the longest path that Linux takes.
pub const MAX_SOURCE_FILE_CHARS: usize = 4096;

/// Which text was refused.
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

/// What a limit counts.
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

/// Why a text was refused. The messages never repeat the text, which may be a megabyte long.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    #[error("the {field} is empty")]
    Empty { field: Field },
    #[error("the {field} has {actual} {unit}; the limit is {limit}")]
    TooLong { field: Field, limit: usize, actual: usize, unit: Unit },
    #[error("the {field} holds a NUL character")]
    Nul { field: Field },
    #[error("the {field} holds {found:?}; allowed: {allowed}")]
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

/// The same number for the same text, always (FNV-1a). It tells what was changed by accident, not by somebody who wants to
/// deceive.
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

/// The name of an agent or a project, for people, follows the rule for titles.
pub fn check_display_name(text: &str) -> Result<(), TextError> {
    check_name(Field::Name, text, MAX_TITLE_CHARS)
}

/// What an agent can do follows the rule for titles.
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

/// As a task's key.
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
