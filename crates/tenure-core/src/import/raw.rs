//! Slices of a JSON text with their line numbers.
//!
//! Guarantees: determining the lines of slices in ascending order takes a single pass over the text. Nesting is
//! bounded by the JSON parser, not by the stack.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Format, ImportError};

/// Computes the lines of slices of one text.
pub(super) struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1 }
    }

    /// `piece` must be a slice of the text.
    pub(super) fn line_of(&mut self, piece: &str) -> usize {
        let offset = piece.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        if offset < self.offset {
            (self.offset, self.line) = (0, 1);
        }
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        self.line += passed.matches('\n').count();
        self.offset = offset;
        self.line
    }
}

/// Parses a slice that begins on `line`.
pub(super) fn value_of(piece: &str, format: Format, line: usize) -> Result<Value, ImportError> {
    serde_json::from_str(piece).map_err(|error| syntax(format, line, &error))
}

/// The elements of an array that begins on `line`.
pub(super) fn elements(piece: &str, format: Format, line: usize) -> Result<Vec<&RawValue>, ImportError> {
    serde_json::from_str(piece).map_err(|error| syntax(format, line, &error))
}

pub(super) fn syntax(format: Format, first_line: usize, error: &serde_json::Error) -> ImportError {
    let message = error.to_string();
    // The position in the parser's message is relative to the slice, not to the file.
    let said = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
    let message = format!("{said} (column {})", error.column());
    ImportError::Syntax { format, line: first_line + error.line().saturating_sub(1), message }
}
