//! A finding of `doctor`: its severity, a description, and the command that fixes it.

use serde_json::{Value, json};
use tenure_core::hints::{self, Hint};

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
    /// What to do about it.
    pub(super) hint: Hint,
    /// Whether `--fix` fixes it.
    pub(super) fixable: bool,
}

impl Finding {
    pub(super) fn problem(check: &'static str, sentence: impl Into<String>, hint: Hint) -> Self {
        Self { check, severity: Severity::Problem, sentence: sentence.into(), hint, fixable: false }
    }

    pub(super) fn warning(check: &'static str, sentence: impl Into<String>, hint: Hint) -> Self {
        Self { severity: Severity::Warning, ..Self::problem(check, sentence, hint) }
    }

    /// A problem that `--fix` fixes.
    pub(super) fn fixable_problem(check: &'static str, sentence: impl Into<String>) -> Self {
        Self::problem(check, sentence, hints::fix()).fixable()
    }

    /// A warning that `--fix` clears.
    pub(super) fn fixable_warning(check: &'static str, sentence: impl Into<String>) -> Self {
        Self::warning(check, sentence, hints::fix()).fixable()
    }

    /// Marks a finding that `--fix` fixes as well.
    pub(super) fn fixable(mut self) -> Self {
        self.fixable = true;
        self
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "check": self.check,
            "severity": self.severity.as_str(),
            "sentence": self.sentence,
            "command": self.hint.command,
            "fixable": self.fixable,
        })
    }
}
