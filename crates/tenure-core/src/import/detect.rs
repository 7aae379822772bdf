//! Detects the format of a file by its name and, if that is ambiguous, by its content.

use serde_json::Value;

use super::Format;
use super::backlog_md::is_task;
use super::markdown::is_check_item;

pub(super) fn format_of(file_name: &str, text: &str) -> Option<Format> {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown" | "mdown" | "mdx") if is_task(text) => Some(Format::BacklogMd),
        Some("md" | "markdown" | "mdown" | "mdx") => Some(Format::Markdown),
        Some("csv") => Some(Format::VibeKanban),
        Some("yaml" | "yml") => Some(Format::Lodestar),
        Some("jsonl" | "ndjson") => Some(Format::Beads),
        Some("json") => Some(kind_of_json(text)),
        _ => by_content(text),
    }
}

fn by_content(text: &str) -> Option<Format> {
    if text.trim_start().starts_with(['{', '[']) && !text.lines().any(is_check_item) {
        Some(kind_of_json(text))
    } else if text.lines().any(is_check_item) {
        Some(Format::Markdown)
    } else if text.lines().any(|line| line.trim_end() == "tasks:" || line.starts_with("tasks: ")) {
        Some(Format::Lodestar)
    } else {
        None
    }
}

/// tenure's objects have no `issue_type`; every beads issue has one. Only beads files contain several objects in a
/// row. The other tools are recognised by fields of their first task.
fn kind_of_json(text: &str) -> Format {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let starts_with_object = |line: Option<&str>| line.is_some_and(|line| line.starts_with("{\""));
    let object_per_line = starts_with_object(lines.next()) && starts_with_object(lines.next());
    if object_per_line || text.contains("\"issue_type\"") {
        return Format::Beads;
    }
    let Ok(whole) = serde_json::from_str::<Value>(text) else { return Format::Json };
    let list = match &whole {
        Value::Object(fields) => fields.get("tasks").or_else(|| fields.get("data")).unwrap_or(&whole),
        other => other,
    };
    let first = list.get(0).unwrap_or(list);
    let has = |name: &str| first.get(name).is_some();
    if has("number") && has("title") && !has("key") {
        Format::Github
    } else if has("project_id") && has("title") {
        Format::VibeKanban
    } else if has("testStrategy")
        || has("subtasks")
        || first.get("id").is_some_and(Value::is_number)
        || is_tagged(&whole)
    {
        Format::TaskMaster
    } else {
        Format::Json
    }
}

/// Task Master's lists by tag: every field is an object with `tasks`.
fn is_tagged(whole: &Value) -> bool {
    whole.as_object().is_some_and(|tags| {
        !tags.is_empty() && tags.values().all(|tag| tag.get("tasks").is_some_and(Value::is_array))
    })
}
