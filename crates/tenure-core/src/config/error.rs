//! Configuration errors as data: the binary chooses the exit code and adds the file name and hints.

use std::fmt;

use super::origin::Origin;
use crate::hints::{self, Hint};
use crate::yaml::YamlError;

/// A position in a file. Line and column are counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Where a wrong key or value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    File(Position),
    Environment {
        variable: String,
    },
    Flag {
        flag: String,
    },
    /// The argument of `config get` or `config set`.
    Request,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(position) => write!(f, " at {position}"),
            Location::Environment { variable } => write!(f, " from {variable}"),
            Location::Flag { flag } => write!(f, " from {flag}"),
            Location::Request => Ok(()),
        }
    }
}

/// One setting that takes part in a [`ConfigError::Conflict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("This is not YAML that tenure can read: {problem} at {at}.")]
    Syntax { problem: String, at: Position },

    #[error("The file has {bytes} bytes; a configuration file may have {limit}.")]
    TooLarge { bytes: usize, limit: usize },

    #[error(
        "The file must contain settings such as `locking: {{leaseTtl: 15m}}`, but contains {got} at {at}."
    )]
    NotSettings { got: String, at: Position },

    #[error("The key {key:?} at {at} was already given at {first}.")]
    DuplicateKey { key: String, at: Position, first: Position },

    #[error("Unknown key {key:?}{location}.{}", did_you_mean(.nearest.as_deref()))]
    UnknownKey { key: String, location: Location, nearest: Option<String> },

    #[error("{}{location} must be {expected}, but is {got}.", .key.escape_debug())]
    BadValue { key: String, location: Location, expected: String, got: String },

    #[error("{rule} must hold, but {}.", list(.causes))]
    Conflict { rule: String, causes: Vec<Cause> },

    #[error("{key} is a group of settings; name one of its keys.")]
    NotAValue { key: String },

    #[error("Cannot set {key} in place: {reason}.")]
    CannotEdit { key: String, reason: String },
}

impl From<YamlError> for ConfigError {
    fn from(error: YamlError) -> Self {
        match error {
            YamlError::Syntax { problem, at } => Self::Syntax { problem, at },
            YamlError::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
            YamlError::DuplicateKey { key, at, first } => Self::DuplicateKey { key, at, first },
        }
    }
}

impl ConfigError {
    /// The position of the problem, if it is in a file.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Syntax { at, .. } | Self::NotSettings { at, .. } | Self::DuplicateKey { at, .. } => {
                Some(*at)
            }
            Self::UnknownKey { location: Location::File(at), .. }
            | Self::BadValue { location: Location::File(at), .. } => Some(*at),
            _ => None,
        }
    }

    /// What to do next, if a command helps.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            // With an error in a file, the settings cannot be listed.
            Self::UnknownKey { nearest: None, .. } if self.is_usage() => Some(hints::list_settings()),
            _ => None,
        }
    }

    /// Whether the error is in the arguments or the environment (exit 2) rather than in a file (exit 3).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownKey { location, .. } | Self::BadValue { location, .. } => {
                !matches!(location, Location::File(_))
            }
            Self::NotAValue { .. } => true,
            _ => false,
        }
    }

    /// Values given as a single text are parsed like a file; this reports their errors at the location of that text.
    pub(super) fn moved_to(self, key: &str, new: &Location) -> Self {
        match self {
            Self::UnknownKey { key, nearest, .. } => Self::UnknownKey { key, location: new.clone(), nearest },
            Self::BadValue { key, expected, got, .. } => {
                Self::BadValue { key, location: new.clone(), expected, got }
            }
            other => Self::BadValue {
                key: key.to_owned(),
                location: new.clone(),
                expected: "valid YAML".to_owned(),
                got: match other {
                    Self::Syntax { problem, .. } => format!("not ({problem})"),
                    Self::DuplicateKey { key, .. } => format!("not (it has {key:?} twice)"),
                    _ => "too large".to_owned(),
                },
            },
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(" Did you mean {nearest:?}?")).unwrap_or_default()
}

fn list(causes: &[Cause]) -> String {
    let each: Vec<String> =
        causes.iter().map(|cause| format!("{} is {} ({})", cause.key, cause.value, cause.origin)).collect();
    each.join(", ")
}
