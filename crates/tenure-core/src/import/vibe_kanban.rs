//! vibe-kanban: the CSV files of its export (`issues.csv`, and `relationships.csv` beside it), or the tasks of its local API as
//! JSON.
//!
//! Mapping of the CSV: `Issue ID` is the key, `Project` the section, `Labels` are labels, and a parent depends on its children. A
//! `Blocking` relationship is a dependency of the related issue. Urgent, high, medium and low become 25, 50, 100 and 150. Of the
//! JSON, title, description and status are taken; its ids are UUIDs, which are not keys.

use std::collections::HashMap;

use serde_json::Value;

use super::collect::Collector;
use super::csv::{self, CsvRecord};
use super::fields::ImportField;
use super::json::NO_EQUAL;
use super::raw::value_of;
use super::{Format, Import, ImportError, ImportedTask, ProblemKind, words};

pub(super) fn parse(files: &[(&str, &str)]) -> Result<Import, ImportError> {
    let mut into = Collector::default();
    let mut parents = Vec::new();
    let mut relationships = Vec::new();
    for (name, text) in files {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with(['[', '{']) {
            read_json(text, &mut into)?;
            continue;
        }
        let records = csv::records(text);
        let columns = records.first().map(|header| header.cells.clone()).unwrap_or_default();
        let has = |column: &str| columns.iter().any(|name| name == column);
        let rows = records.iter().skip(1).map(|record| ExportedRow { columns: &columns, record });
        if has("Issue ID") && has("Title") {
            rows.for_each(|row| read_issue(&row, &mut parents, &mut into));
        } else if has("Issue ID") && has("Related Issue ID") {
            relationships.extend(rows.map(|row| {
                let cell = |column| row.cell(column).to_owned();
                (row.record.line, cell("Issue ID"), cell("Related Issue ID"), cell("Type"))
            }));
        } else {
            into.note(1, &format!("file {name}"), "it has neither issues nor relationships");
        }
    }
    relate(relationships, &mut into);
    words::join_children(parents, &mut into);
    into.finish()
}

struct ExportedRow<'a> {
    columns: &'a [String],
    record: &'a CsvRecord,
}

impl ExportedRow<'_> {
    fn cell(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.record.cells.get(at)).map_or("", String::as_str)
    }
}

fn read_issue(row: &ExportedRow<'_>, parents: &mut Vec<(usize, String)>, into: &mut Collector) {
    let line = row.record.line;
    let some = |column: &str| Some(row.cell(column).to_owned()).filter(|text| !text.is_empty());
    let labels = row.cell("Labels").split(',').map(str::trim).filter(|label| !label.is_empty());
    let task = ImportedTask {
        key: some("Issue ID"),
        title: row.cell("Title").to_owned(),
        description: row.cell("Description").to_owned(),
        status: words::status(row.cell("Status"), line, into),
        section: some("Project"),
        priority: words::priority(row.cell("Priority"), line, into),
        labels: labels.map(str::to_owned).collect(),
        line,
        ..ImportedTask::default()
    };
    for (column, why) in
        [("Assignee(s)", "an import grants no lease"), ("Start Date", NO_EQUAL), ("Due Date", NO_EQUAL)]
    {
        if !row.cell(column).is_empty() {
            into.note(line, &format!("column `{column}`"), why);
        }
    }
    let at = into.add(task);
    parents.extend(some("Parent Issue").map(|parent| (at, parent)));
}

/// Each with its line, the two issues and the type.
fn relate(relationships: Vec<(usize, String, String, String)>, into: &mut Collector) {
    let positions: HashMap<String, usize> =
        (0..).zip(into.tasks_mut().iter()).filter_map(|(at, task)| Some((task.key.clone()?, at))).collect();
    for (line, issue, related, kind) in relationships {
        let (first, then) = match kind.to_ascii_lowercase().replace('_', "").as_str() {
            "blocking" => (issue, related),
            "blockedby" => (related, issue),
            _ => {
                into.note(line, &format!("relationship of type `{kind}`"), "it does not block");
                continue;
            }
        };
        match positions.get(&then).and_then(|at| into.tasks_mut().get_mut(*at)) {
            Some(task) => task.depends_on.push(first),
            None => into.note(line, "relationship of an issue that is not in the file", "it was ignored"),
        }
    }
}

/// An array of tasks, or the answer of the API, which has it in `data`.
fn read_json(text: &str, into: &mut Collector) -> Result<(), ImportError> {
    let tasks = match value_of(text, Format::VibeKanban, 1)? {
        Value::Object(mut fields) => fields.remove("data").unwrap_or_default(),
        other => other,
    };
    let Value::Array(tasks) = tasks else {
        let message = "expected an array of tasks".to_owned();
        return Err(ImportError::Syntax { format: Format::VibeKanban, line: 1, message });
    };
    for task in tasks {
        let Value::Object(fields) = task else {
            into.refuse(1, ProblemKind::WrongType { field: "task".to_owned(), expected: "an object" });
            continue;
        };
        let mut read = ImportedTask { line: 1, ..ImportedTask::default() };
        for (name, value) in fields {
            let field = ImportField { name: &name, line: 1 };
            match name.as_str() {
                "title" => read.title = field.text(value, into),
                "description" => read.description = field.text(value, into),
                "status" => read.status = words::status(&field.text(value, into), 1, into),
                "id" | "project_id" | "created_at" | "updated_at" => {}
                _ => field.unmapped(&value, NO_EQUAL, into),
            }
        }
        into.add(read);
    }
    Ok(())
}
