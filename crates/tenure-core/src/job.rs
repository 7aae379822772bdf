//! Jobs: one command over many items. What is stored of them, and how they are shown.

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
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
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
    /// What is stored of a job. Whether an open one is running is asked of its leases.
    JobState {
        /// Its items are being written. Until they all are, there is no such job.
        Loading => "loading",
        Open => "open",
        Completed => "completed",
        /// Over with something in the dead-letter list, or stopped by a failure.
        Failed => "failed",
        Cancelled => "cancelled",
    }
}

words! {
    /// How a job is shown.
    JobStatus {
        Running => "running",
        /// Unfinished, and nobody works on it.
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
        /// Has failed where failures are passed over.
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
        /// Into the dead-letter list, and on with the others.
        Dlq => "dlq",
        /// Into the dead-letter list, and no other is started.
        Stop => "stop",
        /// Noted, and passed over.
        Skip => "skip",
    }
}

/// The first pause before an item is tried again; every one where the pause is fixed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

impl Backoff {
    /// How long to wait after so many failures.
    pub fn pause(self, failures: u32) -> Duration {
        match self {
            Self::Fixed => FIRST_PAUSE,
            Self::Exponential => {
                let doublings = failures.saturating_sub(1).min(20);
                FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
            }
        }
    }
}

/// Where the items came from, so that it can be looked at again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemSource {
    /// None: standard input, which nobody can read again.
    pub file: Option<String>,
    /// A JSON pointer to the list.
    pub path: Option<String>,
    /// Field and value; all of them have to match.
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

/// What a job does. Two that are equal do the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// With its placeholders.
    pub command: Vec<String>,
    /// Where it is run.
    pub workdir: String,
    pub source: ItemSource,
    /// Of the items, in their order.
    pub items_hash: String,
    pub items: u64,
    pub options: JobOptions,
}

impl Definition {
    /// What is different in `new`, each as a sentence. Nothing if it does the same.
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

/// How many items stand where. Kept by the store, which counts as it moves them.
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
    /// Nothing is left to do.
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

    /// `at_work`: somebody holds it, or one of its items.
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

/// One of a job's items.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub job: String,
    /// From 1, in the order of the list. It is the item's identity: two that look the same are two.
    pub number: u64,
    pub state: ItemState,
    /// JSON, as it was given.
    pub payload: String,
    /// How often it was run and failed.
    pub failures: u32,
    /// Not before then is it run again.
    pub due_at: Timestamp,
    /// Of the last failure.
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

/// The job and the number of an item that is held.
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
    fn pauses_double_up_to_a_limit_or_stay_the_same() {
        let pauses: Vec<_> = (1..=4).map(|n| Backoff::Exponential.pause(n).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8]);
        assert_eq!(Backoff::Exponential.pause(u32::MAX), LONGEST_PAUSE);
        assert_eq!(Backoff::Fixed.pause(9), FIRST_PAUSE);
    }

    #[test]
    fn what_changed_in_a_definition_is_named() {
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
