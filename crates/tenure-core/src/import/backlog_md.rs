//! Backlog.md: a folder of Markdown files, one per task, each with YAML front matter.
//!
//! Mapping: `id` is the key, `milestone` the section, `dependencies` and `labels` are kept, and the text below the front matter
//! is the description, without the tool's own comments. A task depends on its children, which name it in `parent_task_id`.
//! `sourceFile` is the file. The priorities high, medium and low become 50, 100 and 150.

use serde_json::{Map, Value};

use super::collect::Collector;
use super::fields::ImportField;
use super::json::{NO_EQUAL, OWNED_BY_STORE};
use super::spec::front_matter_object;
use super::{Format, Import, ImportError, ImportedTask, words};

pub(super) fn parse(files: &[(&str, &str)]) -> Result<Import, ImportError> {
    let mut into = Collector::default();
    let mut parents = Vec::new();
    for (name, text) in files {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((front, body)) = split(text) else {
            into.note(1, &format!("file {name}"), "it has no front matter, so it is not a task");
            continue;
        };
        let fields =
            front_matter_object(&without_people(front), Format::BacklogMd).map_err(|error| match error {
                ImportError::Syntax { format, line, message } => {
                    ImportError::Syntax { format, line: line + 1, message: format!("{message} (in {name})") }
                }
                other => other,
            })?;
        if !fields.contains_key("id") {
            into.note(1, &format!("file {name}"), "its front matter has no `id`, so it is not a task");
            continue;
        }
        read_task(fields, name, body, &mut parents, &mut into);
    }
    match_case(&mut into);
    words::join_children(parents, &mut into);
    into.finish()
}

/// Whether a text is one of the tool's task files.
pub(super) fn is_task(text: &str) -> bool {
    let has = |front: &str, name: &str| front.lines().any(|line| line.starts_with(name));
    split(text).is_some_and(|(front, _)| has(front, "id:") && has(front, "title:") && has(front, "status:"))
}

/// The front matter and the text below it.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let (front, body) = rest.split_once("\n---")?;
    Some((front, body.split_once('\n').map_or("", |(_, body)| body)))
}

/// The tool writes names as `@ann`, which is not YAML. Assignees are not imported, so their lines are emptied.
fn without_people(front: &str) -> String {
    let mut is_person = false;
    let mut out = String::with_capacity(front.len());
    for line in front.lines() {
        if !line.starts_with([' ', '-', '\t']) {
            is_person = line.starts_with("assignee:") || line.starts_with("reporter:");
        }
        if !is_person {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

fn read_task(
    fields: Map<String, Value>,
    file: &str,
    body: &str,
    parents: &mut Vec<(usize, String)>,
    into: &mut Collector,
) {
    let line = 1;
    let mut task = ImportedTask { line, source_file: Some(file.to_owned()), ..ImportedTask::default() };
    let mut parent = None;
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "id" => task.key = field.optional_text(value, into),
            "title" => task.title = field.text(value, into),
            "status" => task.status = words::status(&field.text(value, into), line, into),
            "priority" => task.priority = words::priority(&field.text(value, into), line, into),
            "labels" => task.labels = field.texts(value, into),
            "dependencies" => task.depends_on = field.texts(value, into),
            "milestone" => task.section = field.optional_text(value, into),
            "parent_task_id" => parent = field.optional_text(value, into),
            // The children name their parent.
            "subtasks" | "ordinal" => {}
            "created_date" | "updated_date" => {
                field.unmapped(&value, OWNED_BY_STORE, into);
            }
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    let is_marker = |line: &&str| {
        let line = line.trim();
        line.starts_with("<!--")
            && line.ends_with("-->")
            && (line.contains(":BEGIN") || line.contains(":END"))
    };
    let lines: Vec<&str> = body.lines().filter(|line| !is_marker(line)).collect();
    lines.join("\n").trim().clone_into(&mut task.description);
    let at = into.add(task);
    parents.extend(parent.map(|parent| (at, parent)));
}

/// The tool compares ids without regard to case; dependencies get the case of the keys.
fn match_case(into: &mut Collector) {
    let keys: std::collections::HashMap<String, String> = into
        .tasks_mut()
        .iter()
        .filter_map(|task| task.key.clone())
        .map(|key| (key.to_ascii_lowercase(), key))
        .collect();
    for task in into.tasks_mut() {
        for on in &mut task.depends_on {
            if let Some(key) = keys.get(&on.to_ascii_lowercase()) {
                on.clone_from(key);
            }
        }
    }
}
