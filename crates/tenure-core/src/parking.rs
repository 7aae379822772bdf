//! Parking: an account, a host or a preset is not used for a while, because an agent could not work with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::duration::format_rounded;
use crate::ending::Ending;
use crate::id::{Fence, TaskId};

/// Waiters for the same reset are spread over this time after it.
const SPREAD_MILLIS: i64 = 60_000;

/// What is parked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The account with a provider that one or more presets use.
    Account(String),
    /// A machine, by its host id.
    Host(String),
    Preset(String),
}

impl Subject {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Account(_) => "account",
            Self::Host(_) => "host",
            Self::Preset(_) => "preset",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Account(name) | Self::Host(name) | Self::Preset(name) => name,
        }
    }

    /// Parses `KIND:NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let name = name.to_owned();
        match kind {
            "account" => Some(Self::Account(name)),
            "host" => Some(Self::Host(name)),
            "preset" => Some(Self::Preset(name)),
            _ => None,
        }
    }

    /// As it is shown to people.
    pub fn label(&self) -> String {
        match self {
            Self::Account(name) => format!("account {name}"),
            Self::Host(_) => "host".to_owned(),
            Self::Preset(name) => format!("preset {name}"),
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

/// The preset, the account and the host of an attempt: what can be parked because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkingScope {
    pub preset: String,
    pub account: String,
    pub host: String,
    /// Changes with the configuration of the preset.
    pub fingerprint: String,
}

impl ParkingScope {
    pub fn subjects(&self) -> [Subject; 3] {
        [
            Subject::Account(self.account.clone()),
            Subject::Host(self.host.clone()),
            Subject::Preset(self.preset.clone()),
        ]
    }
}

/// Whether a subject can be used, and how its last attempts ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parking {
    pub subject: Subject,
    /// The last ending that counts against it.
    pub ending: Option<Ending>,
    /// How many attempts in a row had such an ending.
    pub in_a_row: u32,
    /// The last of those attempts.
    pub attempts: Vec<CountedAttempt>,
    pub parked_at: Option<Timestamp>,
    /// When it is tried again. `None` if it is not parked, if the reset is known, or if a person has to act.
    pub next_try_at: Option<Timestamp>,
    /// The reset of a limit that the agent printed.
    pub resets_at: Option<Timestamp>,
    /// Consecutive times it was parked; the pause doubles each time.
    pub times_parked: u32,
    pub reason: Option<String>,
    /// The preset's fingerprint: it is tried again when that changes.
    pub until_changed: Option<String>,
    /// The fence of the lease under which it is tried. While that is live, nothing else tries it.
    pub probe: Option<Fence>,
}

/// An attempt that counts against a preset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CountedAttempt {
    pub task: TaskId,
    pub fence: Fence,
    pub cost: Cost,
}

/// What an attempt has cost its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    #[default]
    Nothing,
    /// It counts against `tasks.maxAttempts`.
    Attempt,
    /// It counts against `tasks.maxRejections`.
    Rejection,
}

impl Parking {
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            ending: None,
            in_a_row: 0,
            attempts: Vec::new(),
            parked_at: None,
            next_try_at: None,
            resets_at: None,
            times_parked: 0,
            reason: None,
            until_changed: None,
            probe: None,
        }
    }

    /// The earliest time of the next try; `None` if a person has to act first.
    pub fn tries_at(&self) -> Option<Timestamp> {
        let parked = self.parked_at.map_or(0, Timestamp::as_millis);
        let spread = Duration::from_millis(parked.rem_euclid(SPREAD_MILLIS).unsigned_abs());
        self.resets_at.map(|at| at.after(spread)).or(self.next_try_at)
    }

    /// `Account claude is parked: claude reports a usage limit; wake-up tries it again in 40s`
    pub fn sentence(&self, now: Timestamp) -> String {
        let why = self.reason.as_deref().unwrap_or("its last attempts failed");
        let next = match (self.tries_at(), &self.until_changed) {
            (Some(at), _) if at > now => {
                format!("; wake-up tries it again in {}", format_rounded(at.since(now)))
            }
            (Some(_), _) => "; the next wake-up tries it again".to_owned(),
            (None, Some(_)) => "; it is tried again when its configuration changes".to_owned(),
            (None, None) => "; it is tried again by `tenure runners start`".to_owned(),
        };
        let label = self.subject.label();
        let mut letters = label.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        format!("{first}{} is parked: {why}{next}", letters.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_parsed_from_its_text() {
        for subject in
            [Subject::Account("claude".into()), Subject::Host("boot:1".into()), Subject::Preset("a:b".into())]
        {
            assert_eq!(Subject::parse(&subject.to_string()), Some(subject));
        }
        assert_eq!(Subject::parse("planet:earth"), None);
    }
}
