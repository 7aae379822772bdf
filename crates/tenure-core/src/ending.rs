//! Why an attempt by an agent ended, and the tokens it used.

use serde::{Deserialize, Serialize};

/// Why an attempt by an agent ended. The ending decides what becomes of the task and what is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It ended well.
    Done,
    /// The agent reported that it cannot do the task.
    GaveUp,
    /// It ended well, but did not report what became of the task.
    Unreported,
    /// It ended well after it was denied something, and did not report what became of the task.
    PermissionDenied,
    /// A usage or rate limit.
    Limited,
    /// The provider is at capacity or fails.
    Overloaded,
    /// The provider could not be reached.
    NoNetwork,
    /// The account has no credit, or its plan does not include this use.
    NoCredit,
    /// The login or key is missing, expired or refused.
    NotLoggedIn,
    /// The model or an option is not known to the program or its provider.
    Misconfigured,
    /// The task itself cannot be done this way, for example because its prompt is too long.
    TaskError,
    /// It printed nothing for too long.
    Hung,
    /// It was still running after the longest permitted time.
    TimedOut,
    /// Its runner was stopped.
    Stopped,
    /// Its lease was lost.
    LeaseLost,
    /// A signal killed it.
    Crashed,
    /// Not recognised.
    Unclassified,
}

impl Ending {
    pub const ALL: [Self; 17] = [
        Self::Done,
        Self::GaveUp,
        Self::Unreported,
        Self::PermissionDenied,
        Self::Limited,
        Self::Overloaded,
        Self::NoNetwork,
        Self::NoCredit,
        Self::NotLoggedIn,
        Self::Misconfigured,
        Self::TaskError,
        Self::Hung,
        Self::TimedOut,
        Self::Stopped,
        Self::LeaseLost,
        Self::Crashed,
        Self::Unclassified,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GaveUp => "gave_up",
            Self::Unreported => "unreported",
            Self::PermissionDenied => "permission_denied",
            Self::Limited => "limited",
            Self::Overloaded => "overloaded",
            Self::NoNetwork => "no_network",
            Self::NoCredit => "no_credit",
            Self::NotLoggedIn => "not_logged_in",
            Self::Misconfigured => "misconfigured",
            Self::TaskError => "task_error",
            Self::Hung => "hung",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::LeaseLost => "lease_lost",
            Self::Crashed => "crashed",
            Self::Unclassified => "unclassified",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.as_str() == text)
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an agent used, in the numbers that it printed itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input. Codex and Gemini include what was read from a cache, Claude Code and opencode do not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input that was read from a cache.
    pub cached_tokens: u64,
    /// Input that was written to a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Millionths of a dollar. `None` if the agent prints no cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl Usage {
    /// All tokens, of whatever kind.
    pub fn tokens(self) -> u64 {
        [self.output_tokens, self.cached_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add)
    }

    /// Whether a running total can include `earlier`.
    pub fn covers(self, earlier: Self) -> bool {
        self.input_tokens >= earlier.input_tokens && self.output_tokens >= earlier.output_tokens
    }

    /// What a running total has grown by since it was `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let cost = self.micro_usd.map(|cost| cost.saturating_sub(earlier.micro_usd.unwrap_or(0)));
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(earlier.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(earlier.cache_write_tokens),
            micro_usd: cost,
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = match (self.micro_usd, other.micro_usd) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            micro_usd: cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_parsed_from_its_name() {
        for ending in Ending::ALL {
            assert_eq!(Ending::parse(ending.as_str()), Some(ending));
            assert_eq!(serde_json::to_value(ending).unwrap(), ending.as_str());
        }
        assert_eq!(Ending::parse("finished"), None);
    }
}
