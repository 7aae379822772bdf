//! Configuration errors as data: the binary chooses the exit code and adds the file name and hints.

use std::fmt;

use super::origin::Origin;
use crate::yaml::YamlError;

/// A place in a file, both counted from 1; columns count characters.
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
pub enum Place {
    File(Position),
    Environment {
        variable: String,
    },
    Flag {
        flag: String,
    },
    /// As the argument of `config get` or `config set`.
    Request,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(position) => write!(f, " at {position}"),
            Place::Environment { variable } => write!(f, " from {variable}"),
            Place::Flag { flag } => write!(f, " from {flag}"),
            Place::Request => Ok(()),
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

    #[error("The file must hold settings such as `locking: {{leaseTtl: 15m}}`, but at {at} it has {got}.")]
    NotSettings { got: String, at: Position },

    #[error("The key {key:?} at {at} was already given at {first}.")]
    DuplicateKey { key: String, at: Position, first: Position },

    #[error("Unknown key {key:?}{place}. {}", did_you_mean(.nearest.as_deref()))]
    UnknownKey { key: String, place: Place, nearest: Option<String> },

    #[error("{}{place} must be {expected}, but is {got}.", .key.escape_debug())]
    BadValue { key: String, place: Place, expected: String, got: String },

    #[error("{rule} must hold, but {}.", list(.causes))]
    Conflict { rule: String, causes: Vec<Cause> },

    #[error("{key} is a group of settings; name one of its keys.")]
    NotAValue { key: String },

    #[error("Cannot set {key} in place: {reason}. Edit the file by hand: `tenure config edit`.")]
    CannotEdit { key: String, reason: String },
}

impl From<YamlError> for ConfigError {
    fn from(error: YamlError) -> Self {
        match error {
            YamlError::Syntax { problem, at } => Self::Syntax { problem, at },
            YamlError::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
            YamlError::Twice { key, at, first } => Self::DuplicateKey { key, at, first },
        }
    }
}

impl ConfigError {
    /// Where in the file the problem is, if it is in a file.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Syntax { at, .. } | Self::NotSettings { at, .. } | Self::DuplicateKey { at, .. } => {
                Some(*at)
            }
            Self::UnknownKey { place: Place::File(at), .. }
            | Self::BadValue { place: Place::File(at), .. } => Some(*at),
            _ => None,
        }
    }

    /// Whether the caller's arguments or environment are to blame (exit 2) rather than a file (exit 3).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownKey { place, .. } | Self::BadValue { place, .. } => !matches!(place, Place::File(_)),
            Self::NotAValue { .. } => true,
            _ => false,
        }
    }

    /// Structured values given as one text are parsed like a file; this moves their errors to the place of that text.
    pub(super) fn moved_to(self, key: &str, new: &Place) -> Self {
        match self {
            Self::UnknownKey { key, nearest, .. } => Self::UnknownKey { key, place: new.clone(), nearest },
            Self::BadValue { key, expected, got, .. } => {
                Self::BadValue { key, place: new.clone(), expected, got }
            }
            other => Self::BadValue {
                key: key.to_owned(),
                place: new.clone(),
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
    match nearest {
        Some(nearest) => format!("Did you mean {nearest:?}?"),
        None => "`tenure config show` lists every key.".to_owned(),
    }
}

fn list(causes: &[Cause]) -> String {
    let each: Vec<String> =
        causes.iter().map(|cause| format!("{} is {} ({})", cause.key, cause.value, cause.origin)).collect();
    each.join(", ")
}
