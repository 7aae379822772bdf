//! Events as text.

use std::collections::HashMap;

use crate::error::Result;
use crate::event::{Event, EventKind};
use crate::id::{SectionId, TaskId};
use crate::store::{TaskLookup, View};
use serde_json::Value;

/// The names of the tasks and sections in events. A deleted one gets its name from its deletion event, if that was read.
#[derive(Debug, Default)]
pub struct Names {
    tasks: HashMap<TaskId, TaskLabel>,
    resources: HashMap<String, String>,
}

#[derive(Debug)]
struct TaskLabel {
    key: String,
    title: String,
}

impl Names {
    pub fn learn(&mut self, view: &dyn View, events: &[Event]) -> Result<()> {
        for event in events {
            self.learn_resource(view, event)?;
            let Some(task) = &event.task else { continue };
            if self.tasks.contains_key(task) {
                continue;
            }
            let found = view.find_tasks(TaskLookup::Id(task.as_str()), 1)?;
            let found = found.into_iter().next().map(|name| TaskLabel { key: name.key, title: name.title });
            let deleted = || {
                let title = text_of(event, "title").unwrap_or_default().to_owned();
                text_of(event, "key").map(|key| TaskLabel { key: key.to_owned(), title })
            };
            if let Some(label) = found.or_else(deleted) {
                self.tasks.insert(task.clone(), label);
            }
        }
        Ok(())
    }

    fn learn_resource(&mut self, view: &dyn View, event: &Event) -> Result<()> {
        let Some(resource) = text_of(event, "resource").filter(|r| !self.resources.contains_key(*r)) else {
            return Ok(());
        };
        if let Some(id) = resource.strip_prefix("section:")
            && let Some(section) = view.section(&SectionId::new(id))?
        {
            self.resources.insert(resource.to_owned(), format!("section:{}", section.name));
        }
        Ok(())
    }

    /// The event's subject: a task's key, a section's name, or another id.
    pub fn subject(&self, event: &Event) -> String {
        let named = |known: &str| self.resources.get(known).map_or(known, String::as_str).to_owned();
        match &event.task {
            Some(task) => self.tasks.get(task).map_or(task.as_str(), |label| &label.key).to_owned(),
            None => text_of(event, "section")
                .or_else(|| text_of(event, "resource"))
                .map(named)
                .unwrap_or_default(),
        }
    }

    /// The title of the event's task.
    pub fn title(&self, event: &Event) -> Option<&str> {
        let label = self.tasks.get(event.task.as_ref()?)?;
        Some(label.title.as_str()).filter(|title| !title.is_empty())
    }
}

/// The change, or the message.
pub fn what(event: &Event) -> Option<String> {
    let detail = event.detail.as_object()?;
    match event.kind {
        EventKind::TaskUpdated | EventKind::SectionUpdated => {
            let fields: Vec<&str> =
                detail.keys().map(String::as_str).filter(|key| *key != "section").collect();
            (!fields.is_empty()).then(|| fields.join(", "))
        }
        EventKind::MessageSent | EventKind::MessageAcknowledged => {
            let number = detail.get("message").and_then(Value::as_i64)?;
            let to = text_of(event, "to").map(|to| format!(" for {to}")).unwrap_or_default();
            Some(format!("#{number}{to}"))
        }
        _ => None,
    }
}

/// The remark that was given with the change, or its reason.
pub fn remark(event: &Event) -> Option<&str> {
    text_of(event, "message").or_else(|| text_of(event, "reason"))
}

fn text_of<'a>(event: &'a Event, key: &str) -> Option<&'a str> {
    event.detail.get(key).and_then(Value::as_str)
}
