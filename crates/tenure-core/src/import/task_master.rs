//! Task Master's `tasks.json`: an object with `tasks`, or one such object per tag.
//!
//! Mapping: ids are keys, `1` and for a subtask `1.2`; with a tag other than `master`, `TAG-1`, in a section of the tag's name. A
//! task depends on its `dependencies` and its subtasks. `details` and `testStrategy` are appended to the description. The
//! priorities high, medium and low become 50, 100 and 150.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::collect::Collector;
use super::fields::{ImportField, append_part};
use super::json::NO_EQUAL;
use super::raw::syntax;
use super::{Format, Import, ImportError, ImportedStatus, ImportedTask, ProblemKind, words};

pub(super) fn parse(text: &str) -> Result<Import, ImportError> {
    let whole: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| syntax(Format::TaskMaster, 1, &error))?;
    let rest = Rest(Cell::new((text, 1)));
    let mut into = Collector::default();
    let lists: Vec<(String, Value)> = if whole.get("tasks").is_some_and(Value::is_array) {
        vec![("master".to_owned(), Value::Object(whole))]
    } else {
        whole.into_iter().collect()
    };
    for (tag, list) in lists {
        let tasks = match list {
            Value::Object(mut fields) => fields.remove("tasks"),
            _ => None,
        };
        match tasks {
            Some(Value::Array(tasks)) => {
                let tag = Tag { name: tag, rest: &rest };
                for task in tasks {
                    tag.read(task, None, &mut into);
                }
            }
            _ => into.note(1, &format!("field `{tag}`"), "it is not a list of tasks"),
        }
    }
    into.finish()
}

struct Tag<'a> {
    name: String,
    rest: &'a Rest<'a>,
}

/// The text after the title that was found last, and its line. The values have no positions; titles are searched in file
/// order, so that all of them take a single pass.
struct Rest<'a>(Cell<(&'a str, usize)>);

impl Rest<'_> {
    /// The line of the next occurrence of a title.
    fn line_of(&self, title: &str) -> usize {
        let (text, line) = self.0.get();
        let quoted = Value::from(title).to_string();
        let Some((before, after)) = text.split_once(&quoted) else { return line };
        let line = line + before.matches('\n').count();
        self.0.set((after, line));
        line
    }
}

impl Tag<'_> {
    fn key(&self, id: &str) -> String {
        if self.name == "master" { id.to_owned() } else { format!("{}-{id}", self.name) }
    }

    /// Adds a task and its subtasks, and returns its key.
    fn read(&self, value: Value, parent: Option<&str>, into: &mut Collector) -> Option<String> {
        let Value::Object(fields) = value else {
            into.refuse(
                1,
                ProblemKind::WrongType { field: "tasks".to_owned(), expected: "a list of objects" },
            );
            return None;
        };
        let line = fields.get("title").and_then(Value::as_str).map_or(1, |title| self.rest.line_of(title));
        let own = fields.get("id").map(id_text).unwrap_or_default();
        let id = parent.map_or(own.clone(), |parent| format!("{parent}.{own}"));
        let mut task = ImportedTask { line, key: Some(self.key(&id)), ..ImportedTask::default() };
        task.section = Some(self.name.clone()).filter(|name| name != "master");
        let (mut details, mut tests, mut subtasks) = (String::new(), String::new(), Vec::new());
        for (name, value) in fields {
            let field = ImportField { name: &name, line };
            match name.as_str() {
                "id" => {}
                "title" => task.title = field.text(value, into),
                "description" => task.description = field.text(value, into),
                "details" => details = field.text(value, into),
                "testStrategy" => tests = field.text(value, into),
                "status" => task.status = words::status(&field.text(value, into), line, into),
                "priority" => task.priority = words::priority(&field.text(value, into), line, into),
                "dependencies" => {
                    let ids = value.as_array().into_iter().flatten().map(id_text);
                    // A number in a subtask is the id of another subtask of the same task.
                    task.depends_on = ids
                        .map(|on| match parent {
                            Some(parent) if !on.contains('.') => self.key(&format!("{parent}.{on}")),
                            _ => self.key(&on),
                        })
                        .collect();
                }
                "subtasks" => {
                    subtasks = if let Value::Array(subtasks) = value { subtasks } else { Vec::new() }
                }
                _ => field.unmapped(&value, NO_EQUAL, into),
            }
        }
        append_part(&mut task.description, "Details", &details);
        append_part(&mut task.description, "Test strategy", &tests);
        let is_finished = matches!(task.status, ImportedStatus::Completed | ImportedStatus::Skipped);
        let (key, at) = (task.key.clone(), into.add(task));
        for subtask in subtasks {
            let child = self.read(subtask, Some(&id), into);
            if let (Some(child), Some(task), false) = (child, into.tasks_mut().get_mut(at), is_finished) {
                task.depends_on.push(child);
            }
        }
        key
    }
}

fn id_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
