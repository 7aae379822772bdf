//! A finding of `doctor`: its severity, a description, and the command that fixes it.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Something does not work, or will stop working.
    Problem,
    /// Everything works, but could be improved.
    Warning,
}

impl Severity {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The name of the check.
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    pub(super) sentence: String,
    pub(super) command: String,
    /// Whether `--fix` fixes it.
    pub(super) fixable: bool,
}

impl Finding {
    pub(super) fn problem(
        check: &'static str,
        sentence: impl Into<String>,
        command: impl Into<String>,
    ) -> Self {
        let (sentence, command) = (sentence.into(), command.into());
        Self { check, severity: Severity::Problem, sentence, command, fixable: false }
    }

    pub(super) fn warning(
        check: &'static str,
        sentence: impl Into<String>,
        command: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::problem(check, sentence, command) }
    }

    /// Marks a finding that `--fix` fixes.
    pub(super) fn fixable(mut self) -> Self {
        self.fixable = true;
        self
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "check": self.check,
            "severity": self.severity.as_str(),
            "sentence": self.sentence,
            "command": self.command,
            "fixable": self.fixable,
        })
    }
}

/// The command of a fixable finding.
pub(super) const FIX: &str = "tenure doctor --fix";
