//! The array that `gh issue list --json number,title,body,labels,state,…` prints.
//!
//! Mapping: `number` 12 is the key `GH-12`, `body` the description, `milestone` the section, and the names of `labels` are
//! labels. A closed issue is completed, or skipped if it was closed as not planned. Links between issues are not in this output.

use serde_json::{Map, Value};

use super::collect::Collector;
use super::fields::ImportField;
use super::json::{NO_EQUAL, OWNED_BY_STORE};
use super::raw::{Lines, elements, value_of};
use super::{Format, Import, ImportError, ImportedStatus, ImportedTask, ProblemKind};

pub(super) fn parse(text: &str) -> Result<Import, ImportError> {
    let (mut into, mut lines) = (Collector::default(), Lines::of(text));
    for piece in elements(text, Format::Github, 1)? {
        let line = lines.line_of(piece.get());
        match value_of(piece.get(), Format::Github, line)? {
            Value::Object(fields) => read_issue(fields, line, &mut into),
            _ => {
                into.refuse(
                    line,
                    ProblemKind::WrongType { field: "issue".to_owned(), expected: "an object" },
                );
            }
        }
    }
    into.finish()
}

fn read_issue(fields: Map<String, Value>, line: usize, into: &mut Collector) {
    let mut task = ImportedTask { line, ..ImportedTask::default() };
    let (mut state, mut reason) = (String::new(), String::new());
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "number" => task.key = field.whole_number(&value, into).map(|number| format!("GH-{number}")),
            "title" => field.text(value, into).trim().clone_into(&mut task.title),
            "body" => task.description = field.text(value, into).replace("\r\n", "\n"),
            "labels" => task.labels = names(value, "name"),
            "milestone" => task.section = names(Value::Array(vec![value]), "title").pop(),
            "state" => state = field.text(value, into),
            "stateReason" => reason = field.text(value, into),
            "assignees" => field.unmapped(&value, "an import grants no lease", into),
            "createdAt" | "updatedAt" | "closedAt" => {
                field.unmapped(&value, OWNED_BY_STORE, into);
            }
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    task.status = match (state.to_ascii_lowercase().as_str(), reason.to_ascii_lowercase().as_str()) {
        ("closed", "not_planned" | "duplicate") => ImportedStatus::Skipped,
        ("closed", _) => ImportedStatus::Completed,
        _ => ImportedStatus::Pending,
    };
    into.add(task);
}

/// Names of objects, or texts.
fn names(value: Value, field: &str) -> Vec<String> {
    let Value::Array(values) = value else { return Vec::new() };
    let name = |value: Value| match value {
        Value::String(name) => Some(name),
        Value::Object(mut fields) => match fields.remove(field) {
            Some(Value::String(name)) => Some(name),
            _ => None,
        },
        _ => None,
    };
    values.into_iter().filter_map(name).filter(|name| !name.is_empty()).collect()
}
