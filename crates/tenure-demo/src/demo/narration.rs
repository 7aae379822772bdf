//! Describes the event feed for display.

use std::collections::BTreeMap;

use tenure_core::event::{Event, EventKind};
use tenure_core::id::TaskId;
use tenure_core::task::TaskStatus;

/// The style of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Warning,
    Faint,
}

/// Describes events with names instead of ids.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    names: BTreeMap<String, String>,
    runners: usize,
}

impl Narrator {
    pub(super) fn set_name(&mut self, id: &str, name: String) {
        self.names.insert(id.to_owned(), name);
    }

    /// The id of a task that was created under this key.
    pub(super) fn task_id(&self, key: &str) -> Option<TaskId> {
        self.names.iter().find(|(_, name)| *name == key).map(|(id, _)| TaskId::new(id))
    }

    /// The text for an event; `None` for events that are not displayed.
    pub(super) fn describe(&mut self, event: &Event) -> Option<(Tone, String)> {
        let detail = |name: &str| event.detail[name].as_str().unwrap_or_default();
        match event.kind {
            EventKind::RunnerStarted => {
                self.runners += 1;
                let name = format!("runner {}", self.runners);
                let text = format!("{name} is up");
                self.set_name(&event.actor, name);
                Some((Tone::Plain, text))
            }
            EventKind::TaskCreated => {
                self.set_name(event.task.as_ref()?.as_str(), detail("key").to_owned());
                None
            }
            EventKind::LeaseAcquired => {
                let (kind, id) = detail("resource").split_once(':')?;
                let verb = match kind {
                    "section" => "holds",
                    "task" => "takes",
                    _ => return None,
                };
                let (holder, resource) = (self.name(&event.actor), self.name(id));
                let fence = event.fence.map(|fence| fence.to_string()).unwrap_or_default();
                let from = event.detail["takenOverFrom"]["holder"].as_str().map(|old| {
                    let id = old.rsplit(' ').next().unwrap_or(old);
                    format!(", taken over from {}", self.name(id))
                });
                let text = format!("{holder} {verb} {resource} (fence {fence}){}", from.unwrap_or_default());
                Some((Tone::Plain, text))
            }
            EventKind::TaskStatus => {
                let key = self.name(event.task.as_ref()?.as_str());
                match event.to? {
                    TaskStatus::Completed => Some((Tone::Good, format!("{key} is completed"))),
                    TaskStatus::Pending => Some((Tone::Plain, format!("{key} is pending again"))),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn name<'n>(&'n self, id: &'n str) -> &'n str {
        self.names.get(id).map_or(id, String::as_str)
    }
}
