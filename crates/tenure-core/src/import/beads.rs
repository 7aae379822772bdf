//! beads' `issues.jsonl`: one issue per line. The array that `bd list --json` prints is accepted as well.
//!
//! Mapping:
//! - `id` is the key; `design`, `acceptance_criteria` and `notes` are appended to the description; `issue_type` is a
//!   label unless it is the default `task`; `priority` is kept (0 is the most urgent in both).
//! - `blocks` and `waits-for` links are dependencies. A `parent-child` link is reversed: the parent depends on its
//!   children, as with nested items in Markdown, unless it is done or the child depends on it. Other links do not
//!   block.
//! - `closed` is completed. All unfinished statuses become pending, with a note: `blocked` is computed from
//!   dependencies, and tenure has no deferred tasks.
//! - Skipped: deleted issues, templates, pinned notes, and beads' records of agents and messages.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::collect::Collector;
use super::fields::{ImportField, append_part, is_empty_value};
use super::raw::{Lines, elements, value_of};
use super::{Format, Import, ImportError, ImportedStatus, ImportedTask, ProblemKind};

const NO_EQUAL: &str = "tenure has no such field";
const OWNED_BY_STORE: &str = "the importing project assigns its own";

pub(super) fn parse(text: &str) -> Result<Import, ImportError> {
    let mut into = Collector::default();
    let mut families = Vec::new();
    if text.trim_start().starts_with('[') {
        let mut lines = Lines::of(text);
        for piece in elements(text, Format::Beads, 1)? {
            let line = lines.line_of(piece.get());
            read_entry(piece.get(), line, &mut families, &mut into)?;
        }
    } else {
        for (line, piece) in (1..).zip(text.lines()) {
            if !piece.trim().is_empty() {
                read_entry(piece, line, &mut families, &mut into)?;
            }
        }
    }
    join_families(families, &mut into);
    into.finish()
}

/// A `parent-child` link: the issue and its parent.
struct ParentLink {
    child: usize,
    parent: String,
    line: usize,
}

fn read_entry(
    piece: &str,
    line: usize,
    families: &mut Vec<ParentLink>,
    into: &mut Collector,
) -> Result<(), ImportError> {
    match value_of(piece, Format::Beads, line)? {
        Value::Object(fields) => read_issue(fields, line, families, into),
        _ => into.refuse(line, ProblemKind::WrongType { field: "issue".to_owned(), expected: "an object" }),
    }
    Ok(())
}

/// Why an entry is not a task, as reported to the user.
fn not_a_task(fields: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    let word = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| fields.get(name).is_some_and(|value| !is_empty_value(value));
    if !matches!(word("_type"), "" | "issue") || flag("_schema") {
        return Some(("record that is not an issue", "only issues become tasks"));
    }
    if word("status") == "tombstone" || flag("deleted_at") {
        return Some(("deleted issue", "it was deleted in beads"));
    }
    if flag("is_template") {
        return Some(("template", "a template is not work"));
    }
    if word("status") == "pinned" || flag("pinned") {
        return Some(("pinned issue", "a pinned note is not work"));
    }
    match word("issue_type") {
        "message" | "event" | "agent" | "role" => Some(("message, event, agent or role", "it is not work")),
        _ => None,
    }
}

fn read_issue(fields: Map<String, Value>, line: usize, families: &mut Vec<ParentLink>, into: &mut Collector) {
    if let Some((what, why)) = not_a_task(&fields) {
        let key = fields.get("id").and_then(Value::as_str).map(str::to_owned);
        return into.leave_out(key, line, what, why);
    }
    let mut task = ImportedTask { line, ..ImportedTask::default() };
    let mut parts =
        [("Design", String::new()), ("Acceptance criteria", String::new()), ("Notes", String::new())];
    let mut has_title = false;
    let problems_before = into.total_problems();
    let mut kind = None;
    let mut parents = Vec::new();
    for (name, value) in fields {
        let field = ImportField { name: &name, line };
        match name.as_str() {
            "id" => task.key = field.optional_text(value, into),
            "title" => {
                has_title = true;
                task.title = field.text(value, into);
            }
            "description" => task.description = field.text(value, into),
            "design" => parts[0].1 = field.text(value, into),
            "acceptance_criteria" => parts[1].1 = field.text(value, into),
            "notes" => parts[2].1 = field.text(value, into),
            "status" => task.status = read_status(&field.text(value, into), line, into),
            "priority" => task.priority = field.whole_number(&value, into),
            "issue_type" => kind = field.optional_text(value, into),
            "labels" => task.labels = field.texts(value, into),
            "dependencies" => read_links(value, line, &mut task, &mut parents, into),
            "created_at" | "updated_at" => field.unmapped(&value, OWNED_BY_STORE, into),
            "assignee" | "lease_expires_at" | "heartbeat_at" => {
                field.unmapped(&value, "an import grants no lease", into);
            }
            "_type" | "dependency_count" | "dependent_count" | "comment_count" | "parent" => {}
            _ => field.unmapped(&value, NO_EQUAL, into),
        }
    }
    if !has_title {
        into.refuse(line, ProblemKind::Missing { field: "title".to_owned() });
    }
    if into.total_problems() > problems_before {
        return;
    }
    for (heading, part) in parts {
        append_part(&mut task.description, heading, &part);
    }
    task.labels.extend(kind.filter(|kind| kind != "task"));
    let child = into.add(task);
    families.extend(parents.into_iter().map(|parent| ParentLink { child, parent, line }));
}

fn read_links(
    value: Value,
    line: usize,
    task: &mut ImportedTask,
    parents: &mut Vec<String>,
    into: &mut Collector,
) {
    let links = match value {
        Value::Null => return,
        Value::Array(links) => links,
        _ => {
            let reason = ProblemKind::WrongType { field: "dependencies".to_owned(), expected: "a list" };
            return into.refuse(line, reason);
        }
    };
    for link in links {
        let word = |name: &str| link.get(name).and_then(Value::as_str).filter(|word| !word.is_empty());
        // `bd list --json` prints the other issue inline, together with the type of the link.
        let Some(target) = word("depends_on_id").or_else(|| word("id")) else {
            let field = "depends_on_id".to_owned();
            into.refuse(line, ProblemKind::Missing { field });
            continue;
        };
        let kind = word("type").or_else(|| word("dependency_type")).unwrap_or("blocks");
        if target.starts_with("external:") {
            into.note(
                line,
                "dependency on another project",
                "a task can only depend on tasks of its project",
            );
            continue;
        }
        match kind {
            "blocks" => task.depends_on.push(target.to_owned()),
            "waits-for" => {
                into.note(
                    line,
                    "dependency of type `waits-for`",
                    "the task depends on the issue itself, not on its children",
                );
                task.depends_on.push(target.to_owned());
            }
            "parent-child" => parents.push(target.to_owned()),
            "conditional-blocks" => {
                into.note(
                    line,
                    "dependency of type `conditional-blocks`",
                    "a task cannot depend on a failure",
                );
            }
            other => {
                into.note(line, &format!("dependency of type `{other}`"), "it does not block");
            }
        }
    }
}

fn read_status(name: &str, line: usize, into: &mut Collector) -> ImportedStatus {
    let why = match name {
        "" | "open" => return ImportedStatus::Pending,
        "closed" => return ImportedStatus::Completed,
        "in_progress" | "hooked" => "an import grants no lease; it is pending",
        "blocked" => "blocking is computed from dependencies; it is pending",
        "deferred" => "tasks cannot be deferred; it is pending",
        _ => "tenure has no such status; it is pending",
    };
    into.note(line, &format!("status `{name}`"), why);
    ImportedStatus::Pending
}

fn join_families(families: Vec<ParentLink>, into: &mut Collector) {
    let positions: HashMap<String, usize> = into
        .tasks_mut()
        .iter()
        .enumerate()
        .filter_map(|(position, task)| Some((task.key.clone()?, position)))
        .collect();
    for ParentLink { child, parent, line } in families {
        let tasks = into.tasks_mut();
        let Some((&parent_at, child_task)) = positions.get(&parent).zip(tasks.get(child)) else {
            into.note(line, "link to a parent that is not in the file", "it was ignored");
            continue;
        };
        let child_waits = child_task.depends_on.contains(&parent);
        let key = child_task.key.clone();
        let Some(parent_task) = tasks.get_mut(parent_at) else { continue };
        if parent_task.status == ImportedStatus::Completed {
            into.note(line, "link to a parent that is done", "it no longer depends on anything");
        } else if child_waits {
            into.note(line, "link to a parent that the child depends on", "they would depend on each other");
        } else {
            match key {
                Some(key) => parent_task.depends_on.push(key),
                None => parent_task.depends_on_items.push(child),
            }
            into.note(line, "dependency of type `parent-child`", "the parent depends on its children");
        }
    }
}
