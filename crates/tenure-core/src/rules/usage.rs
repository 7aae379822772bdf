//! What agents have used, summed.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::ending::Usage;
use crate::error::Result;
use crate::store::View;

/// What usage is summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    Task,
    Agent,
    /// The day, in UTC, on which an attempt ended.
    Day,
}

impl UsageBy {
    pub const ALL: [Self; 3] = [Self::Task, Self::Agent, Self::Day];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Agent => "agent",
            Self::Day => "day",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == text)
    }
}

/// What was used for a task, by an agent or on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSum {
    pub name: String,
    /// The attempts whose usage is known.
    pub attempts: u64,
    pub usage: Usage,
}

/// The usage of all attempts that ended at or after `since`, in the order of the names.
pub fn sum_usage(view: &dyn View, by: UsageBy, since: Timestamp) -> Result<Vec<UsageSum>> {
    let mut sums: BTreeMap<String, (u64, Usage)> = BTreeMap::new();
    for attempt in view.usage_since(since)? {
        let name = match by {
            UsageBy::Task => attempt.task,
            UsageBy::Agent => attempt.agent,
            UsageBy::Day => attempt.ended_at.to_seconds().chars().take("2026-11-16".len()).collect(),
        };
        let (attempts, usage) = sums.entry(name).or_default();
        *attempts += 1;
        *usage = usage.plus(attempt.usage);
    }
    let sum = |(name, (attempts, usage))| UsageSum { name, attempts, usage };
    Ok(sums.into_iter().map(sum).collect())
}
