//! The events that hooks can be registered for.

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
    /// Any change of a task, including its status, except for those with a separate event below.
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
    /// A lease ended without its holder releasing it.
    LeaseLost => "lease.lost",
}

impl HookEvent {
    /// The event that a misspelt name is closest to.
    pub fn nearest(text: &str) -> Option<Self> {
        let score = |event: &Self| strsim::jaro_winkler(text, event.as_str());
        let best = Self::ALL.iter().copied().max_by(|a, b| score(a).total_cmp(&score(b)))?;
        (score(&best) >= 0.7).then_some(best)
    }

    /// A list of all events, for a message.
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
    fn a_misspelt_event_leads_to_the_intended_one() {
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
