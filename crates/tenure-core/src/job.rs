//! Jobs: one command over many items, as stored and as displayed.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::lease::{Lease, Resource, ResourceKind};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The stored state of a job. Whether an open job is running follows from its leases.
    JobState {
        /// The items are being written; the job is invisible to everything else until they are complete.
        Loading => "loading",
        Open => "open",
        Completed => "completed",
        /// Finished with items in the dead-letter list, or stopped by a failure.
        Failed => "failed",
        Cancelled => "cancelled",
    }
}

words! {
    /// The displayed status of a job.
    JobStatus {
        Running => "running",
        /// Unfinished, with no live lease on the job or its items.
        Interrupted => "interrupted",
        Completed => "completed",
        Failed => "failed",
        Cancelled => "cancelled",
    }
}

words! {
    ItemState {
        Pending => "pending",
        Running => "running",
        Succeeded => "succeeded",
        /// In the dead-letter list.
        Failed => "failed",
        /// Failed under the policy `skip`.
        Skipped => "skipped",
    }
}

words! {
    Backoff {
        Exponential => "exponential",
        Fixed => "fixed",
    }
}

words! {
    OnFailure {
        /// Moves the item to the dead-letter list and continues.
        Dlq => "dlq",
        /// Moves the item to the dead-letter list and starts no further item.
        Stop => "stop",
        /// Records the failure and continues.
        Skip => "skip",
    }
}

/// The delay before the first retry; with a fixed delay, before every retry.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

impl Backoff {
    /// The delay after this many failures.
    pub fn pause(self, failures: u32) -> Duration {
        match self {
            Self::Fixed => FIRST_DELAY,
            Self::Exponential => {
                let doublings = failures.saturating_sub(1).min(20);
                FIRST_DELAY.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
            }
        }
    }
}

/// Where the items came from, so that a resume can read them again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemSource {
    /// `None` for standard input, which cannot be read again.
    pub file: Option<String>,
    /// A JSON pointer to the list.
    pub path: Option<String>,
    /// Field and value; an item must match all of them.
    pub filters: Vec<(String, String)>,
    pub max_items: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOptions {
    pub parallel: u32,
    pub retries: u32,
    pub backoff: Backoff,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_timeout_ms: Option<u64>,
    pub on_failure: OnFailure,
}

impl JobOptions {
    pub fn item_timeout(&self) -> Option<Duration> {
        self.item_timeout_ms.map(Duration::from_millis)
    }
}

/// What a job does. Two jobs with equal definitions do the same work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Including placeholders.
    pub command: Vec<String>,
    /// The working directory of the command.
    pub workdir: String,
    pub source: ItemSource,
    /// A hash of the items in order.
    pub items_hash: String,
    pub items: u64,
    pub options: JobOptions,
}

impl Definition {
    /// The differences between this and `new`, one sentence each; empty if both are equal.
    pub fn changes_to(&self, new: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut say = |what: &str, old: String, new: String| {
            if old != new {
                changes.push(format!("{what}: {old} → {new}"));
            }
        };
        say("command", self.command.join(" "), new.command.join(" "));
        say("folder", self.workdir.clone(), new.workdir.clone());
        say("parallel", self.options.parallel.to_string(), new.options.parallel.to_string());
        say("retries", self.options.retries.to_string(), new.options.retries.to_string());
        say("backoff", self.options.backoff.to_string(), new.options.backoff.to_string());
        let limit = |options: &JobOptions| {
            options.item_timeout().map_or_else(|| "none".to_owned(), crate::duration::format_short)
        };
        say("item timeout", limit(&self.options), limit(&new.options));
        say("on failure", self.options.on_failure.to_string(), new.options.on_failure.to_string());
        if self.items_hash != new.items_hash {
            let same = if self.items == new.items { ", with other content" } else { "" };
            changes.push(format!("items: {} → {}{same}", self.items, new.items));
        }
        changes
    }
}

/// The number of items in each state, maintained by the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub total: u64,
    pub pending: u64,
    pub running: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Counts {
    /// Whether no item is left to run.
    pub const fn is_over(&self) -> bool {
        self.pending == 0 && self.running == 0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: String,
    pub name: String,
    pub state: JobState,
    pub definition: Definition,
    pub counts: Counts,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Job {
    pub fn resource(&self) -> Resource {
        Resource::new(ResourceKind::Job, &self.id)
    }

    /// `at_work`: whether the job or one of its items has a live lease.
    pub fn status(&self, at_work: bool) -> JobStatus {
        match self.state {
            JobState::Loading | JobState::Open if at_work => JobStatus::Running,
            JobState::Loading | JobState::Open => JobStatus::Interrupted,
            JobState::Completed => JobStatus::Completed,
            JobState::Failed => JobStatus::Failed,
            JobState::Cancelled => JobStatus::Cancelled,
        }
    }
}

/// An item of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub job: String,
    /// Counted from 1 in the order of the source. The number identifies the item: equal payloads are separate items.
    pub number: u64,
    pub state: ItemState,
    /// The item as JSON, unchanged.
    pub payload: String,
    /// How many runs have failed.
    pub failures: u32,
    /// The earliest time of the next run.
    pub due_at: Timestamp,
    /// The error of the last failure.
    pub error: Option<String>,
    pub updated_at: Timestamp,
}

impl Item {
    pub fn resource(&self) -> Resource {
        item_resource(&self.job, self.number)
    }
}

pub(crate) fn item_resource(job: &str, number: u64) -> Resource {
    Resource::new(ResourceKind::Item, format!("{job}/{number}"))
}

impl Resource {
    /// The job, if this is a job or one of its items.
    pub(crate) fn job_id(&self) -> Option<&str> {
        match self.kind {
            ResourceKind::Job => Some(&self.id),
            ResourceKind::Item => self.id.rsplit_once('/').map(|(job, _)| job),
            _ => None,
        }
    }
}

/// The job and item number of a lease on an item.
pub fn item_of(lease: &Lease) -> Option<(&str, u64)> {
    if lease.resource.kind != ResourceKind::Item {
        return None;
    }
    let (job, number) = lease.resource.id.rsplit_once('/')?;
    Some((job, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_or_stay_fixed() {
        let pauses: Vec<_> = (1..=4).map(|n| Backoff::Exponential.pause(n).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8]);
        assert_eq!(Backoff::Exponential.pause(u32::MAX), LONGEST_PAUSE);
        assert_eq!(Backoff::Fixed.pause(9), FIRST_DELAY);
    }

    #[test]
    fn every_difference_between_two_definitions_is_named() {
        let old = Definition {
            command: vec!["echo".into(), "{item}".into()],
            workdir: "/w".into(),
            source: ItemSource::default(),
            items_hash: "a".into(),
            items: 3,
            options: JobOptions {
                parallel: 1,
                retries: 2,
                backoff: Backoff::Fixed,
                item_timeout_ms: None,
                on_failure: OnFailure::Dlq,
            },
        };
        assert!(old.changes_to(&old).is_empty());
        let mut new = old.clone();
        new.command.push("-n".into());
        new.options.item_timeout_ms = Some(5_000);
        new.items_hash = "b".into();
        assert_eq!(
            old.changes_to(&new),
            [
                "command: echo {item} → echo {item} -n",
                "item timeout: none → 5s",
                "items: 3 → 3, with other content"
            ]
        );
    }
}
