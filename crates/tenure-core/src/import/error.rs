//! Errors of an import.

use std::fmt;

use thiserror::Error;

use super::Format;
use crate::text::{TextError, escape_line};

/// How many problems are reported individually; the rest are only counted.
pub(super) const SHOWN_PROBLEMS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Neither the name nor the content determines the format.
    #[error(
        "cannot tell the format: not a Markdown check list, JSON, CSV of vibe-kanban, a lodestar spec or beads JSONL"
    )]
    UnknownFormat,
    /// The format has no folders.
    #[error("this format is one file, not a folder")]
    OneFile,
    /// The file does not conform to its format.
    #[error("line {line}: not a valid {format} file: {message}")]
    Syntax { format: Format, line: usize, message: String },
    /// The file is well-formed, but contains values that cannot be stored.
    #[error("{}", list(.problems, *.total))]
    Invalid {
        /// The first ten, in file order.
        problems: Vec<Problem>,
        /// The total number.
        total: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    pub reason: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProblemKind {
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("the key {key} is already used on line {first}")]
    DuplicateKey { key: String, first: usize },
    #[error("`{}` is missing", escape_line(.field))]
    Missing { field: String },
    #[error("`{}` must be {expected}", escape_line(.field))]
    WrongType { field: String, expected: &'static str },
    #[error("there is no task status `{}`", escape_line(.status))]
    UnknownStatus { status: String },
    #[error("a dependency is not a task key: {0}")]
    Dependency(TextError),
}

fn list(problems: &[Problem], total: usize) -> String {
    let mut text: Vec<String> = problems.iter().map(Problem::to_string).collect();
    let more = total.saturating_sub(problems.len());
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join("\n")
}
