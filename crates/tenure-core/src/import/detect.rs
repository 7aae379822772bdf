//! Detects the format of a file by its name and, if that is ambiguous, by its content.

use super::Format;
use super::markdown::is_check_item;

pub(super) fn format_of(file_name: &str, text: &str) -> Option<Format> {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown" | "mdown" | "mdx") => Some(Format::Markdown),
        Some("yaml" | "yml") => Some(Format::Lodestar),
        Some("jsonl" | "ndjson") => Some(Format::Beads),
        Some("json") => Some(json_or_beads(text)),
        _ => by_content(text),
    }
}

fn by_content(text: &str) -> Option<Format> {
    if text.trim_start().starts_with(['{', '[']) && !text.lines().any(is_check_item) {
        Some(json_or_beads(text))
    } else if text.lines().any(is_check_item) {
        Some(Format::Markdown)
    } else if text.lines().any(|line| line.trim_end() == "tasks:" || line.starts_with("tasks: ")) {
        Some(Format::Lodestar)
    } else {
        None
    }
}

/// tenure's objects have no `issue_type`; every beads issue has one. Only beads files contain several objects in a
/// row.
fn json_or_beads(text: &str) -> Format {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let starts_with_object = |line: Option<&str>| line.is_some_and(|line| line.starts_with("{\""));
    let object_per_line = starts_with_object(lines.next()) && starts_with_object(lines.next());
    if object_per_line || text.contains("\"issue_type\"") { Format::Beads } else { Format::Json }
}
