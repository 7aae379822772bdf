//! The origin of an effective value, as displayed by `config show`.

use std::fmt;

/// In order of precedence: a greater origin overrides a lesser one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Origin {
    Default,
    /// The user's file, under the name that the caller gave it.
    User {
        path: String,
        line: usize,
    },
    /// The project's file, under the name that the caller gave it.
    Project {
        path: String,
        line: usize,
    },
    Environment {
        variable: String,
    },
    Flag {
        flag: String,
    },
}

impl Origin {
    /// The stable name of each kind, for JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User { .. } => "user",
            Self::Project { .. } => "project",
            Self::Environment { .. } => "environment",
            Self::Flag { .. } => "flag",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User { path, line } | Self::Project { path, line } => write!(f, "{path}:{line}"),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}
