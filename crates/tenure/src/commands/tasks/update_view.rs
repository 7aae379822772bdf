//! The difference between a file and the project, as text and as JSON.

use serde_json::{Map, Value, json};
use tenure_core::rules::{FieldChange, ImportUpdate, UpdateOutcome, UpdatedTask};

use crate::app::App;
use crate::table::cut_to;
use crate::text::{Style, Text};

/// How many tasks that are not in the file are named in text.
const NAMED: usize = 20;
/// The width of an old or new value.
const VALUE: usize = 30;

pub(super) fn text(app: &App<'_>, name: &str, update: &ImportUpdate) -> Text {
    let count =
        |wanted: fn(&UpdateOutcome) -> bool| update.tasks.iter().filter(|task| wanted(&task.outcome)).count();
    let mut text = Text::new();
    text.styled(Style::Good, app.past("Updated", "Would update")).and(
        Style::Plain,
        format!(
            " from {name}: {} added, {} changed, {} unchanged",
            count(|outcome| *outcome == UpdateOutcome::Added),
            count(|outcome| matches!(outcome, UpdateOutcome::Changed(_))),
            count(|outcome| *outcome == UpdateOutcome::Unchanged)
        ),
    );
    if !update.new_sections.is_empty() {
        text.line(format!("  New sections: {}", update.new_sections.join(", ")));
    }
    for task in &update.tasks {
        describe(&mut text, task);
    }
    if let Some(total) = Some(update.absent.len()).filter(|total| *total > 0) {
        text.line(format!("  Not in the file, and kept: {total}"));
        for task in update.absent.iter().take(NAMED) {
            text.styled(Style::Dim, format!("    {}  {}  {}", task.key, task.status, task.title));
        }
        if total > NAMED {
            text.styled(Style::Dim, format!("    and {} more", total - NAMED));
        }
    }
    text
}

fn describe(text: &mut Text, task: &UpdatedTask) {
    match &task.outcome {
        UpdateOutcome::Added => {
            text.styled(Style::Good, "  + ").and(Style::Plain, format!("{}  {}", task.key, task.title));
        }
        UpdateOutcome::Changed(changes) => {
            text.styled(Style::Warn, "  ~ ").and(Style::Plain, format!("{}  {}", task.key, task.title));
            for FieldChange { field, from, to } in changes {
                text.line(format!("      {field}: {} → {}", shown(from), shown(to)));
            }
        }
        UpdateOutcome::Unchanged if !task.kept.is_empty() => {
            text.line(format!("  = {}  {}", task.key, task.title));
        }
        UpdateOutcome::Unchanged => {}
    }
    for kept in &task.kept {
        text.styled(
            Style::Dim,
            format!("      {} stays: the file says {}; {}", kept.field, kept.file, kept.why),
        );
    }
}

/// The first line of a value, shortened.
fn shown(value: &Value) -> String {
    let whole = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(words) if words.is_empty() => "-".to_owned(),
        Value::Array(words) => {
            words.iter().map(|word| word.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let first = whole.lines().next().unwrap_or_default();
    let more = if first.len() < whole.len() { "…" } else { "" };
    if whole.is_empty() { "-".to_owned() } else { cut_to(&format!("{first}{more}"), VALUE) }
}

pub(super) fn data(update: &ImportUpdate, unmapped: Value) -> Value {
    let tasks: Vec<Value> = update.tasks.iter().map(task_object).collect();
    let absent: Vec<Value> = update
        .absent
        .iter()
        .map(|task| json!({"key": task.key, "title": task.title, "status": task.status.as_str()}))
        .collect();
    json!({
        "tasks": tasks,
        "total": tasks.len(),
        "absent": absent,
        "sections": update.new_sections,
        "unmapped": unmapped,
    })
}

fn task_object(task: &UpdatedTask) -> Value {
    let (change, changes): (&str, &[FieldChange]) = match &task.outcome {
        UpdateOutcome::Added => ("added", &[]),
        UpdateOutcome::Changed(changes) => ("changed", changes),
        UpdateOutcome::Unchanged => ("unchanged", &[]),
    };
    let changes: Map<String, Value> = changes
        .iter()
        .map(|change| (change.field.to_owned(), json!({"from": change.from, "to": change.to})))
        .collect();
    let kept: Vec<Value> = task
        .kept
        .iter()
        .map(|kept| json!({"field": kept.field, "file": kept.file, "why": kept.why}))
        .collect();
    json!({"key": task.key, "title": task.title, "change": change, "changes": changes, "kept": kept})
}
