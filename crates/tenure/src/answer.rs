//! The answer of a command: data for programs, text for people, and hints for the next step.

use serde_json::Value;
use tenure_core::hints::Hint;

use crate::text::Text;

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) data: Value,
    pub(crate) text: Text,
    pub(crate) hints: Vec<Hint>,
    pub(crate) exit: u8,
    /// What is printed with `--quiet` instead of the text: the key or id that the command is about.
    pub(crate) key: Option<String>,
}

impl Answer {
    pub(crate) fn new(data: Value, text: Text) -> Self {
        Self { data, text, hints: Vec::new(), exit: 0, key: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// Sets the key or id that is printed alone with `--quiet`.
    #[must_use]
    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the exit code of a command that has an answer and yet does not exit with 0.
    #[must_use]
    pub(crate) fn exit(mut self, code: u8) -> Self {
        self.exit = code;
        self
    }
}
