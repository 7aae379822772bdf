//! Earlier rejections and failures of a task, extracted from its events.

use tenure_core::Timestamp;
use tenure_core::event::{Event, EventKind};
use tenure_core::kernel::is_rejection;
use tenure_core::task::TaskStatus;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    pub at: Timestamp,
    pub actor: String,
    pub kind: SetbackKind,
    /// The message about it; may be empty.
    pub remark: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetbackKind {
    /// The work was finished and then rejected.
    Rejected,
    Failed,
    /// The attempt ended without a finish: killed, hung, or not started.
    BrokenOff,
}

impl SetbackKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::BrokenOff => "broken off",
        }
    }
}

/// In event order.
pub fn setbacks(events: &[Event]) -> Vec<Setback> {
    let found = events.iter().filter_map(|event| {
        let kind = match (event.kind, event.from, event.to) {
            (EventKind::TaskStatus, from, to) if is_rejection(from, to, &event.detail) => {
                SetbackKind::Rejected
            }
            (EventKind::TaskStatus, _, Some(TaskStatus::Failed)) => SetbackKind::Failed,
            (EventKind::AttemptEnded, ..) if event.detail["charged"] == true => SetbackKind::BrokenOff,
            _ => return None,
        };
        let remark = ["message", "reason"].iter().find_map(|key| event.detail[*key].as_str());
        Some(Setback {
            at: event.at,
            actor: event.actor.clone(),
            kind,
            remark: remark.unwrap_or_default().to_owned(),
        })
    });
    found.collect()
}
