//! lodestar's `spec.yaml`.
//!
//! Mapping:
//! - The name under `tasks` is the key. `acceptance_criteria` and the frozen excerpt of `prd` are appended to the
//!   description; `prd.source` with its first anchor is `sourceFile`; `priority` is kept (lower comes first in both).
//! - `todo`, `ready` and `blocked` become pending, because readiness is computed; `todo` gets a note, since lodestar
//!   would not have offered the task yet. `done` becomes review, because lodestar's dependents wait for `verified`,
//!   which becomes completed. `deleted` entries are skipped.
//! - `features` become parallel sections, because a feature only groups tasks and does not exclude other workers.
//!
//! Guarantees in addition to those of the module: aliases and nesting are bounded by the limits of the YAML parser,
//! so a small file cannot expand into a large one.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::collect::Collector;
use super::fields::{ImportField, append_part};
use super::spec::{Spec, SpecEntry};
use super::{Import, ImportError, ImportedSection, ImportedStatus, ImportedTask, ProblemKind};

const NO_EQUAL: &str = "tenure has no such field";
const OWNED_BY_STORE: &str = "the importing project assigns its own";

pub(super) fn parse(text: &str) -> Result<Import, ImportError> {
    let (spec, duplicate) = Spec::parse(text)?;
    let mut into = Collector::default();
    let features = read_features(spec.features, &mut into);
    for entry in spec.tasks {
        read_entry(entry, &features, &mut into);
    }
    for entry in spec.others {
        ImportField { name: &entry.name, line: entry.line }.unmapped(&entry.value, NO_EQUAL, &mut into);
    }
    let import = into.finish()?;
    duplicate.map_or(Ok(import), Err)
}

/// The section of each task that belongs to a feature.
fn read_features(features: Vec<SpecEntry>, into: &mut Collector) -> HashMap<String, String> {
    let mut section_of: HashMap<String, String> = HashMap::new();
    for SpecEntry { name, line, value } in features {
        into.add_section(line, ImportedSection { name: name.clone(), serial: false, priority: None });
        for key in (ImportField { name: "features", line }).texts(value, into) {
            match section_of.get(&key) {
                None => {
                    section_of.insert(key, name.clone());
                }
                Some(first) if *first == name => {}
                Some(_) => {
                    into.note(line, "task in several features", "a task is in one section; the first counts");
                }
            }
        }
    }
    section_of
}

fn read_entry(entry: SpecEntry, features: &HashMap<String, String>, into: &mut Collector) {
    let SpecEntry { name: key, line, value } = entry;
    let Value::Object(fields) = value else {
        return into.refuse(line, ProblemKind::WrongType { field: key, expected: "a task with fields" });
    };
    if fields.get("status").and_then(Value::as_str) == Some("deleted") {
        return into.leave_out(Some(key), line, "deleted task", "it was deleted in lodestar");
    }
    let mut task = ImportedTask { line, section: features.get(&key).cloned(), ..ImportedTask::default() };
    let mut criteria = Vec::new();
    let mut excerpt = None;
    let mut has_title = false;
    let problems_before = into.total_problems();
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "id" => {
                if field.text(value, into) != key {
                    into.note(line, "field `id`", "the task is identified by its name under `tasks`");
                }
            }
            "title" => {
                has_title = true;
                task.title = field.text(value, into);
            }
            "description" => task.description = field.text(value, into),
            "acceptance_criteria" => criteria = field.texts(value, into),
            "depends_on" => task.depends_on = field.texts(value, into),
            "labels" => task.labels = field.texts(value, into),
            "priority" => task.priority = field.whole_number(&value, into),
            "status" => task.status = read_status(&field.text(value, into), line, into),
            "prd" => (task.source_file, excerpt) = read_prd(value, line, into),
            "locks" => field.unmapped(&value, "tenure locks tasks and sections, not files", into),
            "created_at" | "updated_at" => field.unmapped(&value, OWNED_BY_STORE, into),
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    if !has_title {
        into.refuse(line, ProblemKind::Missing { field: "title".to_owned() });
    }
    if into.total_problems() > problems_before {
        return;
    }
    let criteria: Vec<String> = criteria.iter().map(|criterion| format!("- {criterion}")).collect();
    append_part(&mut task.description, "Acceptance criteria", &criteria.join("\n"));
    append_part(&mut task.description, "From the PRD", &excerpt.unwrap_or_default());
    task.key = Some(key);
    into.add(task);
}

fn read_status(name: &str, line: usize, into: &mut Collector) -> ImportedStatus {
    let why = match name {
        "" | "ready" => return ImportedStatus::Pending,
        "done" => return ImportedStatus::Review,
        "verified" => return ImportedStatus::Completed,
        "todo" => "readiness is computed from dependencies; it is pending",
        "blocked" => "blocking is computed from dependencies; it is pending",
        _ => "tenure has no such status; it is pending",
    };
    into.note(line, &format!("status `{name}`"), why);
    ImportedStatus::Pending
}

/// `sourceFile` and the excerpt.
fn read_prd(value: Value, line: usize, into: &mut Collector) -> (Option<String>, Option<String>) {
    let fields = match value {
        Value::Null => return (None, None),
        Value::Object(fields) => fields,
        _ => {
            into.refuse(line, ProblemKind::WrongType { field: "prd".to_owned(), expected: "a mapping" });
            return (None, None);
        }
    };
    let (mut source, mut excerpt, mut anchor) = (None, None, None);
    for (name, value) in fields {
        let path = format!("prd.{name}");
        let field = ImportField { name: &path, line };
        match name.as_str() {
            "source" => source = field.optional_text(value, into),
            "excerpt" => excerpt = field.optional_text(value, into),
            "refs" => anchor = read_refs(value, &field, into),
            "prd_hash" => field.unmapped(&value, "the text is read from the file when it is needed", into),
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    let source = match (source, anchor) {
        (Some(source), Some(anchor)) => Some(format!("{source}#{}", anchor.trim_start_matches('#'))),
        (source, _) => source,
    };
    (source, excerpt)
}

/// The first anchor.
fn read_refs(value: Value, field: &ImportField<'_>, into: &mut Collector) -> Option<String> {
    let mut anchor = None;
    let refs = match value {
        Value::Null => return None,
        Value::Array(refs) => refs,
        _ => {
            into.refuse(
                field.line,
                ProblemKind::WrongType { field: field.name.to_owned(), expected: "a list" },
            );
            return None;
        }
    };
    for (position, reference) in refs.into_iter().enumerate() {
        let Value::Object(mut parts) = reference else {
            into.refuse(
                field.line,
                ProblemKind::WrongType { field: field.name.to_owned(), expected: "a list of refs" },
            );
            continue;
        };
        if position > 0 {
            into.note(field.line, "further `prd.refs`", "a task has one `sourceFile`");
            continue;
        }
        anchor = take_text(&mut parts, "anchor", field, into);
        for (name, value) in parts {
            let path = format!("prd.refs.{name}");
            ImportField { name: &path, line: field.line }.unmapped(&value, NO_EQUAL, into);
        }
    }
    anchor
}

fn take_text(
    parts: &mut Map<String, Value>,
    name: &str,
    field: &ImportField<'_>,
    into: &mut Collector,
) -> Option<String> {
    let value = parts.shift_remove(name)?;
    field.optional_text(value, into)
}
