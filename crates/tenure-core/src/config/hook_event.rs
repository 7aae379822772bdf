//! What a hook can listen to.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! hook_events {
    ($($(#[$doc:meta])* $variant:ident => $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum HookEvent { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        impl HookEvent {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

hook_events! {
    TaskCreated => "task.created",
    /// Anything about a task changed, its status included, except what has an event of its own below.
    TaskUpdated => "task.updated",
    TaskCompleted => "task.completed",
    TaskFailed => "task.failed",
    /// The last open task of a section was completed, skipped or deleted.
    SectionCompleted => "section.completed",
    /// No open task is left in the project.
    ProjectCompleted => "project.completed",
    RunnerStarted => "runner.started",
    RunnerStopped => "runner.stopped",
    RunnerFailed => "runner.failed",
    /// A holder lost its lease without giving it back.
    LeaseLost => "lease.lost",
}

impl HookEvent {
    /// The event that somebody probably meant.
    pub fn nearest(text: &str) -> Option<Self> {
        let score = |event: &Self| strsim::jaro_winkler(text, event.as_str());
        let best = Self::ALL.iter().copied().max_by(|a, b| score(a).total_cmp(&score(b)))?;
        (score(&best) >= 0.7).then_some(best)
    }

    /// All of them, for a message.
    pub fn list() -> String {
        Self::ALL.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_event_leads_to_the_one_that_was_meant() {
        for (given, meant) in [
            ("task.complete", Some(HookEvent::TaskCompleted)),
            ("tasks.created", Some(HookEvent::TaskCreated)),
            ("runner.start", Some(HookEvent::RunnerStarted)),
            ("zzz", None),
        ] {
            assert_eq!(HookEvent::nearest(given), meant, "{given}");
        }
    }
}
