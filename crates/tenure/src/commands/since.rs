//! A moment on the command line: how long ago, or when.

use std::time::Duration;

use tenure_core::{Timestamp, duration};

/// The value of `--since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    Within(Duration),
    At(Timestamp),
}

impl Since {
    /// Parses a duration (`10m`), a time (`2026-11-16T09:00:00Z`) or a day in UTC (`2026-11-16`).
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let at = Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")));
        match at {
            Some(at) => Ok(Self::At(at)),
            None => match duration::parse(text) {
                Ok(within) => Ok(Self::Within(within)),
                Err(error) => {
                    Err(format!("{error}, a day like 2026-11-16, or a time like 2026-11-16T09:00:00Z"))
                }
            },
        }
    }

    pub(crate) fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Within(within) => now.before(within),
            Self::At(at) => at,
        }
    }
}
