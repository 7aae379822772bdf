//! Statuses and priorities that other tools write as words.

use std::collections::HashMap;

use super::collect::Collector;
use super::{ImportedStatus, ImportedTask};

/// The status that a word stands for. Case, spaces, hyphens and underscores do not matter. An unfinished status that tenure
/// does not have becomes pending, with a note.
pub(super) fn status(word: &str, line: usize, into: &mut Collector) -> ImportedStatus {
    let plain: String = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let why = match plain.as_str() {
        "" | "todo" | "pending" | "open" | "backlog" | "new" | "ready" => return ImportedStatus::Pending,
        "done" | "completed" | "complete" | "closed" => return ImportedStatus::Completed,
        "review" | "inreview" => return ImportedStatus::Review,
        "cancelled" | "canceled" | "wontdo" | "duplicate" => return ImportedStatus::Skipped,
        "inprogress" | "doing" => "an import grants no lease; it is pending",
        "blocked" => "blocking is computed from dependencies; it is pending",
        "deferred" => "tasks cannot be deferred; it is pending",
        _ => "tenure has no such status; it is pending",
    };
    into.note(line, &format!("status `{word}`"), why);
    ImportedStatus::Pending
}

/// The priority that a word stands for; 100 is the default, and lower comes first.
pub(super) fn priority(word: &str, line: usize, into: &mut Collector) -> Option<i64> {
    match word.to_lowercase().as_str() {
        "" => None,
        "urgent" | "critical" => Some(25),
        "high" => Some(50),
        "medium" => Some(100),
        "low" => Some(150),
        _ => {
            into.note(
                line,
                &format!("priority `{word}`"),
                "it is not one of urgent, critical, high, medium and low",
            );
            None
        }
    }
}

/// Links from children to the names of their parents: the parent depends on its children, as with nested items in Markdown,
/// unless the child depends on it or the parent is finished. Names are compared without regard to case.
pub(super) fn join_children(links: Vec<(usize, String)>, into: &mut Collector) {
    let lower_key = |task: &ImportedTask| task.key.as_ref().map(|key| key.to_ascii_lowercase());
    let positions: HashMap<String, usize> =
        (0..).zip(into.tasks_mut().iter()).filter_map(|(at, task)| Some((lower_key(task)?, at))).collect();
    for (child, parent) in links {
        let tasks = into.tasks_mut();
        let at = positions.get(&parent.to_ascii_lowercase()).copied();
        let Some((line, key, waits)) = tasks.get(child).map(|task| {
            (task.line, task.key.clone(), task.depends_on.iter().any(|key| key.eq_ignore_ascii_case(&parent)))
        }) else {
            continue;
        };
        let Some(outer) = at.and_then(|at| tasks.get_mut(at)) else {
            into.note(line, "link to a parent that is not in the file", "it was ignored");
            continue;
        };
        if waits || matches!(outer.status, ImportedStatus::Completed | ImportedStatus::Skipped) {
            into.note(
                line,
                "link to a parent that is done or comes first",
                "the parent does not depend on it",
            );
        } else if let Some(key) = key {
            outer.depends_on.push(key);
        } else {
            outer.depends_on_items.push(child);
        }
    }
}
