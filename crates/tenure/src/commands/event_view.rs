//! How events are shown to people.

use std::collections::HashMap;

use serde_json::Value;
use tenure_core::event::{Event, EventKind};
use tenure_core::id::TaskId;
use tenure_core::store::{TaskLookup, View};

/// The keys of the tasks that events speak of. What was deleted since is named by its deletion, or not at all.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<TaskId, String>);

impl Names {
    pub(crate) fn learn(&mut self, view: &dyn View, events: &[Event]) -> tenure_core::Result<()> {
        for event in events {
            let Some(task) = &event.task else { continue };
            if self.0.contains_key(task) {
                continue;
            }
            let found = view.find_tasks(TaskLookup::Id(task.as_str()), 1)?;
            let key = found.into_iter().next().map(|name| name.key);
            if let Some(key) = key.or_else(|| said(event, "key").map(str::to_owned)) {
                self.0.insert(task.clone(), key);
            }
        }
        Ok(())
    }

    /// A task's key, a section's name, or what else the event is about.
    pub(crate) fn subject(&self, event: &Event) -> String {
        let task = event.task.as_ref().map(|task| self.0.get(task).map_or(task.as_str(), String::as_str));
        task.or_else(|| said(event, "section"))
            .or_else(|| said(event, "resource"))
            .unwrap_or_default()
            .to_owned()
    }
}

/// What changed, or which message it was.
pub(crate) fn what(event: &Event) -> Option<String> {
    let detail = event.detail.as_object()?;
    match event.kind {
        EventKind::TaskUpdated | EventKind::SectionUpdated => {
            let fields: Vec<&str> =
                detail.keys().map(String::as_str).filter(|key| *key != "section").collect();
            (!fields.is_empty()).then(|| fields.join(", "))
        }
        EventKind::MessageSent | EventKind::MessageAcknowledged => {
            let number = detail.get("message").and_then(Value::as_i64)?;
            let to = said(event, "to").map(|to| format!(" for {to}")).unwrap_or_default();
            Some(format!("#{number}{to}"))
        }
        _ => None,
    }
}

fn said<'a>(event: &'a Event, key: &str) -> Option<&'a str> {
    event.detail.get(key).and_then(Value::as_str)
}
