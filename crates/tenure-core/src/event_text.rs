//! Events as text.

use std::collections::HashMap;

use crate::error::Result;
use crate::event::{Event, EventKind};
use crate::id::{SectionId, TaskId};
use crate::row_names::RowNames;
use crate::short_id::ShortIds;
use crate::store::View;
use serde_json::Value;

/// The names of the tasks and sections in events. A deleted one gets its name from its deletion event, if that was read.
#[derive(Debug, Default)]
pub struct Names {
    rows: RowNames,
    deleted: HashMap<TaskId, DeletedTask>,
}

#[derive(Debug)]
struct DeletedTask {
    key: String,
    title: String,
}

impl Names {
    pub fn learn(&mut self, view: &dyn View, events: &[Event]) -> Result<()> {
        let tasks = events.iter().filter_map(|event| event.task.clone());
        let sections = events.iter().filter_map(|event| section_id(text_of(event, "resource")?));
        self.rows.learn(view, tasks, sections)?;
        for event in events {
            if let Some(task) = &event.task
                && self.rows.task(task).is_none()
                && let Some(key) = text_of(event, "key")
            {
                let title = text_of(event, "title").unwrap_or_default().to_owned();
                let deleted = DeletedTask { key: key.to_owned(), title };
                self.deleted.entry(task.clone()).or_insert(deleted);
            }
        }
        Ok(())
    }

    /// The key and the title of a task.
    fn task(&self, id: &TaskId) -> Option<(&str, &str)> {
        let deleted = || self.deleted.get(id).map(|task| (task.key.as_str(), task.title.as_str()));
        self.rows.task(id).map(|task| (task.key.as_str(), task.title.as_str())).or_else(deleted)
    }

    /// The event's subject: a task's key, a section's name, or another id.
    pub fn subject(&self, event: &Event) -> String {
        if let Some(task) = &event.task {
            return self.task(task).map_or(task.as_str(), |(key, _)| key).to_owned();
        }
        let known = text_of(event, "section").or_else(|| text_of(event, "resource")).unwrap_or_default();
        let name = section_id(known).and_then(|id| self.rows.section(&id).map(str::to_owned));
        name.map_or_else(|| shortened(known), |name| format!("{SECTION}{name}"))
    }

    /// The title of the event's task.
    pub fn title(&self, event: &Event) -> Option<&str> {
        let (_, title) = self.task(event.task.as_ref()?)?;
        Some(title).filter(|title| !title.is_empty())
    }
}

/// The start of a section in the detail of an event.
const SECTION: &str = "section:";

/// `job:f47ac10b` instead of the whole id, and `item:f47ac10b/3` of an item.
fn shortened(resource: &str) -> String {
    let Some((kind, id)) = resource.split_once(':') else { return resource.to_owned() };
    let (id, item) = id.split_at(id.find('/').unwrap_or(id.len()));
    format!("{kind}:{}{item}", ShortIds::of([]).show(id))
}

fn section_id(resource: &str) -> Option<SectionId> {
    resource.strip_prefix(SECTION).map(SectionId::new)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_jobs_items_and_sessions_are_shortened() {
        let id = "5e9711db-f191-4be4-afe6-ea8e24d1f2aa";
        for (resource, shown) in [
            (format!("job:{id}"), "job:5e9711db"),
            (format!("item:{id}/12"), "item:5e9711db/12"),
            ("runner:0".to_owned(), "runner:0"),
            ("Backend".to_owned(), "Backend"),
            (String::new(), ""),
        ] {
            assert_eq!(shortened(&resource), shown);
        }
    }
}
