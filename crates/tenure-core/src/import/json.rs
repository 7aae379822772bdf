//! tenure's JSON: an array of task objects, an object with `tasks` (and `sections`), or the complete output of
//! `tenure tasks list --json`.
//!
//! Fields are those of the task object in the output. `key` is the key; if it is missing, an `id` that is not a UUID
//! is used instead, because `tasks add` calls the key `--id`. `dependsOn` may contain keys, or ids of tasks in the
//! same file. `depends_on` and `source_file` are accepted too, and as a status also `done`, `todo` and `open`.
//!
//! Ids, times, counters and leases belong to the original store and are not imported; computed fields
//! (`ready`, `blockedBy`, `position`, `sectionId`) are ignored without a note. An unknown status is an error, not a
//! note, because this is tenure's own format. Of a duplicate field, the last counts.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::collect::Collector;
use super::fields::ImportField;
use super::raw::{Lines, elements, syntax, value_of};
use super::{Format, Import, ImportError, ImportedSection, ImportedStatus, ImportedTask, ProblemKind};

pub(super) const NO_EQUAL: &str = "tenure has no such field";
pub(super) const OWNED_BY_STORE: &str = "the importing project assigns its own";

pub(super) fn parse(text: &str) -> Result<Import, ImportError> {
    let mut lines = Lines::of(text);
    let mut into = Collector::default();
    let mut by_id = HashMap::new();
    for piece in find_tasks(text, &mut lines, &mut into)? {
        let line = lines.line_of(piece.get());
        match value_of(piece.get(), Format::Json, line)? {
            Value::Object(fields) => read_task(fields, line, &mut by_id, &mut into),
            _ => {
                into.refuse(line, ProblemKind::WrongType { field: "task".to_owned(), expected: "an object" });
            }
        }
    }
    resolve_ids(&by_id, into.tasks_mut());
    into.finish()
}

/// Finds the array of tasks inside the surrounding objects.
fn find_tasks<'a>(
    text: &'a str,
    lines: &mut Lines<'a>,
    into: &mut Collector,
) -> Result<Vec<&'a RawValue>, ImportError> {
    let mut piece: &RawValue = serde_json::from_str(text).map_err(|error| syntax(Format::Json, 1, &error))?;
    // The output is an object whose `data` is an object whose `tasks` is the array, so two levels suffice.
    for _ in 0..2 {
        let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(piece.get()) else { break };
        let Some(inner) = fields.get("tasks").or_else(|| fields.get("data")) else { break };
        for (name, value) in &fields {
            let line = lines.line_of(value.get());
            match name.as_str() {
                "sections" => read_sections(value_of(value.get(), Format::Json, line)?, line, into),
                "tasks" | "data" | "total" | "schemaVersion" | "success" | "command" | "subcommand"
                | "error" | "hints" => {}
                _ => into.note(line, &format!("field `{name}`"), NO_EQUAL),
            }
        }
        piece = inner;
    }
    let line = lines.line_of(piece.get());
    if !piece.get().starts_with('[') {
        let message = "expected an array of tasks".to_owned();
        return Err(ImportError::Syntax { format: Format::Json, line, message });
    }
    elements(piece.get(), Format::Json, line)
}

fn read_sections(value: Value, line: usize, into: &mut Collector) {
    let Value::Array(sections) = value else {
        return into
            .refuse(line, ProblemKind::WrongType { field: "sections".to_owned(), expected: "a list" });
    };
    for section in sections {
        let mut read = ImportedSection::default();
        match section {
            Value::String(name) => read.name = name,
            Value::Object(fields) => {
                for (name, value) in fields {
                    let field = ImportField { name: &name, line };
                    match name.as_str() {
                        "name" => read.name = field.text(value, into),
                        "parallel" => read.serial = !field.flag(&value, into),
                        "serial" => read.serial = field.flag(&value, into),
                        "priority" => read.priority = field.whole_number(&value, into),
                        _ => field.unmapped(&value, NO_EQUAL, into),
                    }
                }
            }
            _ => {
                into.refuse(
                    line,
                    ProblemKind::WrongType { field: "sections".to_owned(), expected: "a list of names" },
                );
                continue;
            }
        }
        into.add_section(line, read);
    }
}

fn read_task(
    fields: Map<String, Value>,
    line: usize,
    by_id: &mut HashMap<String, (usize, Option<String>)>,
    into: &mut Collector,
) {
    let mut task = ImportedTask { line, ..ImportedTask::default() };
    let mut id = None;
    let mut has_title = false;
    let problems_before = into.total_problems();
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "id" => id = field.optional_text(value, into),
            "title" => {
                has_title = true;
                task.title = field.text(value, into);
            }
            _ => read_field(&mut task, &field, value, into),
        }
    }
    if !has_title {
        into.refuse(line, ProblemKind::Missing { field: "title".to_owned() });
    }
    if into.total_problems() > problems_before {
        return;
    }
    if let Some(id) = &id {
        if Uuid::try_parse(id).is_ok() {
            into.note(line, "field `id`", OWNED_BY_STORE);
        } else if task.key.is_none() {
            task.key = Some(id.clone());
        } else if task.key.as_ref() != Some(id) {
            into.note(line, "field `id`", "the task is identified by its `key`");
        }
    }
    let key = task.key.clone();
    let position = into.add(task);
    if let Some(id) = id {
        by_id.entry(id).or_insert((position, key));
    }
}

/// Reads a field of a task object, except for `id`.
pub(super) fn read_field(
    task: &mut ImportedTask,
    field: &ImportField<'_>,
    value: Value,
    into: &mut Collector,
) {
    match field.name {
        "key" => task.key = field.optional_text(value, into),
        "title" => task.title = field.text(value, into),
        "description" => task.description = field.text(value, into),
        "status" => task.status = read_status(&field.text(value, into), field.line, into),
        "section" => task.section = field.optional_text(value, into),
        "sourceFile" | "source_file" => task.source_file = field.optional_text(value, into),
        "priority" => task.priority = field.whole_number(&value, into),
        "dependsOn" | "depends_on" => task.depends_on = field.texts(value, into),
        "labels" => task.labels = field.texts(value, into),
        "ready" | "blockedBy" | "position" | "sectionId" => {}
        "lease" => field.unmapped(&value, "an import grants no lease", into),
        "attempts" | "rejections" | "createdAt" | "updatedAt" => {
            field.unmapped(&value, OWNED_BY_STORE, into);
        }
        _ => field.unmapped(&value, NO_EQUAL, into),
    }
}

fn read_status(name: &str, line: usize, into: &mut Collector) -> ImportedStatus {
    match name {
        "" | "pending" | "todo" | "open" => ImportedStatus::Pending,
        "in_progress" | "in-progress" => {
            into.note(line, "status `in_progress`", "an import grants no lease; it is pending");
            ImportedStatus::Pending
        }
        "review" => ImportedStatus::Review,
        "completed" | "done" => ImportedStatus::Completed,
        "failed" => ImportedStatus::Failed,
        "skipped" => ImportedStatus::Skipped,
        _ => {
            into.refuse(line, ProblemKind::UnknownStatus { status: name.to_owned() });
            ImportedStatus::Pending
        }
    }
}

/// Ids are meaningless in another store: they are replaced by keys, or by indexes for tasks without a key.
fn resolve_ids(by_id: &HashMap<String, (usize, Option<String>)>, tasks: &mut [ImportedTask]) {
    for task in tasks {
        let mut keys = Vec::with_capacity(task.depends_on.len());
        for named in std::mem::take(&mut task.depends_on) {
            match by_id.get(&named) {
                Some((_, Some(key))) => keys.push(key.clone()),
                Some((position, None)) => task.depends_on_items.push(*position),
                None => keys.push(named),
            }
        }
        task.depends_on = keys;
    }
}
