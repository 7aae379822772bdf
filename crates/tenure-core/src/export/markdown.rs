//! Markdown check lists that the import reads back.
//!
//! Each item is written as a person would write it, read back, and compared. What was not read back is added in a comment
//! `<!-- tenure {…} -->` below the item, which the import reads. So the common case is plain, and every case is exact.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::import::{self, Format, Import, ImportedTask};
use crate::section::{Section, SectionMode};
use crate::task::{DEFAULT_PRIORITY, Task, TaskStatus};

const INTRODUCTION: &str = "<!-- Written by `tenure tasks export`. `tenure tasks import --update` reads it, with the comments. -->\n";

/// Sections in the given order, each with its tasks in the given order. Tasks without a section come first.
pub fn markdown(sections: &[Section], tasks: &[Task]) -> String {
    let mut out = INTRODUCTION.to_owned();
    let loose: Vec<&Task> = tasks.iter().filter(|task| task.section.is_none()).collect();
    let source = common_source(&loose);
    let _ = writeln!(out, "{}", comment(&json!({"sourceFile": source})));
    out.push_str(if loose.is_empty() { "" } else { "\n" });
    for task in loose {
        item(&mut out, task, source);
    }
    let mut by_section: std::collections::HashMap<&str, Vec<&Task>> = std::collections::HashMap::new();
    for task in tasks {
        if let Some(section) = &task.section {
            by_section.entry(section.id.as_str()).or_default().push(task);
        }
    }
    for section in sections {
        let tasks = by_section.remove(section.id.as_str()).unwrap_or_default();
        let inside = common_source(&tasks);
        heading(&mut out, section, inside.filter(|_| inside != source), tasks.is_empty());
        for task in tasks {
            item(&mut out, task, inside.or(source));
        }
    }
    out
}

/// The source of the first task. Most tasks of a section have the same source.
fn common_source<'t>(tasks: &[&'t Task]) -> Option<&'t str> {
    tasks.first().and_then(|task| task.source_file.as_deref())
}

fn heading(out: &mut String, section: &Section, source: Option<&str>, is_empty: bool) {
    let serial = section.mode == SectionMode::Serial;
    let line = format!("## {}{}", one_line(&section.name), if serial { " (serial)" } else { "" });
    let read = read(&format!("{line}\n- [ ] a\n"));
    let found = read.as_ref().and_then(|read| read.sections.first());
    let mut fields = Map::new();
    if is_empty || found.is_none_or(|found| found.name != section.name || found.serial != serial) {
        fields.insert("name".into(), json!(section.name));
        fields.insert("serial".into(), json!(serial));
    }
    if section.priority != DEFAULT_PRIORITY {
        fields.insert("priority".into(), json!(section.priority));
    }
    if let Some(source) = source {
        fields.insert("sourceFile".into(), json!(source));
    }
    let _ = write!(out, "\n{line}\n\n");
    if !fields.is_empty() {
        let _ = write!(out, "{}\n\n", comment(&Value::Object(fields)));
    }
}

fn item(out: &mut String, task: &Task, source: Option<&str>) {
    let line = item_line(task);
    let block = indented(&task.description);
    // Another section follows, so that an unclosed code block or comment in the description is detected.
    let as_text = read(&format!("{line}\n{block}\n## a\n- [ ] a\n")).filter(|read| read.tasks.len() == 2);
    let described = as_text.as_ref().and_then(|read| read.tasks.first());
    let is_described = described.is_some_and(|read| read.description == task.description);
    let read = if is_described { as_text } else { read(&line) };
    let mut fields = differences(task, read.as_ref().and_then(|read| read.tasks.first()));
    if !is_described {
        fields.insert("description".into(), json!(task.description));
    }
    if task.priority != DEFAULT_PRIORITY {
        fields.insert("priority".into(), json!(task.priority));
    }
    if task.source_file.as_deref() != source {
        fields.insert("sourceFile".into(), json!(task.source_file));
    }
    let _ = writeln!(out, "{line}");
    if !fields.is_empty() {
        let _ = writeln!(out, "  {}", comment(&Value::Object(fields)));
    }
    if is_described {
        out.push_str(&block);
    }
}

fn item_line(task: &Task) -> String {
    let mark = match task.status {
        TaskStatus::Completed => 'x',
        TaskStatus::Skipped => '-',
        TaskStatus::InProgress => '~',
        TaskStatus::Pending | TaskStatus::Review | TaskStatus::Failed => ' ',
    };
    let mut line = format!("- [{mark}] {}: {}", task.key, one_line(&task.title));
    if !task.depends_on.is_empty() {
        let _ = write!(line, " (depends on {})", task.depends_on.join(", "));
    }
    for label in &task.labels {
        let _ = write!(line, " #{}", one_line(label));
    }
    line
}

/// The fields that the import would read differently, without the description.
fn differences(task: &Task, read: Option<&ImportedTask>) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut sorted = read.map(|read| read.depends_on.clone()).unwrap_or_default();
    sorted.sort();
    let mut wanted = task.depends_on.clone();
    wanted.sort();
    for (name, is_same, value) in [
        ("key", read.is_some_and(|read| read.key.as_ref() == Some(&task.key)), json!(task.key)),
        ("title", read.is_some_and(|read| read.title == task.title), json!(task.title)),
        (
            "status",
            !matches!(task.status, TaskStatus::Review | TaskStatus::Failed),
            json!(task.status.as_str()),
        ),
        ("dependsOn", read.is_some() && sorted == wanted, json!(task.depends_on)),
        ("labels", read.is_some_and(|read| read.labels == task.labels), json!(task.labels)),
    ] {
        if !is_same {
            fields.insert(name.into(), value);
        }
    }
    fields
}

fn read(text: &str) -> Option<Import> {
    import::parse(Some(Format::Markdown), "", text).ok()
}

/// A comment cannot contain its own end, so `>` is escaped.
fn comment(object: &Value) -> String {
    format!("<!-- tenure {} -->", object.to_string().replace('>', "\\u003e"))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn indented(text: &str) -> String {
    let mut out = String::new();
    for line in text.split('\n').filter(|_| !text.is_empty()) {
        if !line.is_empty() {
            out.push_str("  ");
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}
