//! CSV according to RFC 4180: a header, lines that end with CRLF, and quotes where they are needed.
//!
//! A spreadsheet evaluates a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return. Such a text gets an apostrophe
//! in front of it, so a title cannot become a formula.

use crate::task::Task;

const COLUMNS: [&str; 11] = [
    "key",
    "title",
    "status",
    "section",
    "priority",
    "labels",
    "dependsOn",
    "sourceFile",
    "createdAt",
    "updatedAt",
    "description",
];

pub fn csv(tasks: &[Task]) -> String {
    let mut out = COLUMNS.join(",");
    out.push_str("\r\n");
    for task in tasks {
        let cells = [
            text(&task.key),
            text(&task.title),
            task.status.as_str().to_owned(),
            text(task.section.as_ref().map_or("", |section| &section.name)),
            task.priority.to_string(),
            text(&task.labels.join(" ")),
            text(&task.depends_on.join(" ")),
            text(task.source_file.as_deref().unwrap_or_default()),
            task.created_at.to_string(),
            task.updated_at.to_string(),
            text(&task.description),
        ];
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

/// A cell with text that a user has written.
fn text(value: &str) -> String {
    let harmless = if value.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{harmless}{}\"", value.replace('"', "\"\""))
    } else {
        format!("{harmless}{value}")
    }
}
