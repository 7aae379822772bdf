//! Dependencies between tasks: an acyclic graph.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::add::named;
use crate::context::Context;
use crate::error::{Error, Result, TaskName};
use crate::event::{EventKind, NewEvent};
use crate::holder::Caller;
use crate::id::TaskId;
use crate::kernel;
use crate::store::Tx;
use crate::task::Task;

/// Makes `task` depend on `on`. Idempotent.
pub fn depend(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, task: &str, on: &str) -> Result<Task> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = named(tx, task, &viewer)?;
    let on = named(tx, on, &viewer)?;
    if let Some(mut path) = path_between(tx.edges_from(&on.id)?, on.id.as_str(), task.id.as_str(), &on.key) {
        path.insert(0, task.key.clone());
        return Err(Error::DependencyCycle { path });
    }
    if tx.add_dependency(&task.id, &on.id)? {
        record_dependency(tx, caller, &task.id, &on.key)?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })
}

/// Removes the dependency of `task` on `on`.
pub fn undepend(tx: &mut dyn Tx, ctx: &Context<'_>, caller: &Caller, task: &str, on: &str) -> Result<Task> {
    let viewer = ctx.viewer(tx, Some(&caller.holder))?;
    let task = named(tx, task, &viewer)?;
    let on = named(tx, on, &viewer)?;
    if tx.remove_dependency(&task.id, &on.id)? {
        record_removal(tx, caller, &task.id, &on.key)?;
        kernel::work_appeared(tx, ctx)?;
    }
    tx.task(&task.id, &viewer)?.ok_or(Error::TaskNotFound { reference: task.key })
}

/// The event of a new dependency on the task with this key.
pub(super) fn record_dependency(tx: &mut dyn Tx, caller: &Caller, task: &TaskId, key: &str) -> Result<()> {
    append_update(tx, caller, task, json!({"dependsOn": key}))
}

/// The event of the end of a dependency on the task with this key.
pub(super) fn record_removal(tx: &mut dyn Tx, caller: &Caller, task: &TaskId, key: &str) -> Result<()> {
    append_update(tx, caller, task, json!({"notOn": key}))
}

fn append_update(tx: &mut dyn Tx, caller: &Caller, task: &TaskId, detail: Value) -> Result<()> {
    tx.append(NewEvent::new(EventKind::TaskUpdated, &caller.holder.id).task(task).detail(detail))
}

/// The keys on a path from `from` to `to` along `edges`, including both ends. Iterative, because a chain of a hundred
/// thousand tasks would overflow the call stack.
fn path_between(
    edges: Vec<(TaskName, TaskName)>,
    from: &str,
    to: &str,
    from_key: &str,
) -> Option<Vec<String>> {
    if from == to {
        return Some(vec![from_key.to_owned()]);
    }
    let mut onward: HashMap<String, Vec<TaskName>> = HashMap::new();
    for (task, on) in edges {
        onward.entry(task.id).or_default().push(on);
    }
    // The predecessor of each visited task, with the task's own key.
    let mut came: HashMap<String, (String, String)> = HashMap::new();
    let mut open = vec![from.to_owned()];
    while let Some(at) = open.pop() {
        for next in onward.remove(&at).unwrap_or_default() {
            if next.id == from || came.contains_key(&next.id) {
                continue;
            }
            came.insert(next.id.clone(), (at.clone(), next.key));
            if next.id == to {
                return Some(walk_back(&came, from, from_key, to));
            }
            open.push(next.id);
        }
    }
    None
}

fn walk_back(came: &HashMap<String, (String, String)>, from: &str, from_key: &str, to: &str) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        let Some((before, key)) = came.get(at) else { break };
        path.push(key.clone());
        at = before;
    }
    path.push(from_key.to_owned());
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskStatus;

    fn name(n: usize) -> TaskName {
        TaskName {
            id: format!("id{n}"),
            key: format!("K{n}"),
            title: String::new(),
            status: TaskStatus::Pending,
        }
    }

    #[test]
    fn a_path_is_found_and_named_from_end_to_end() {
        let edges = vec![(name(1), name(2)), (name(2), name(3)), (name(1), name(9))];
        assert_eq!(
            path_between(edges.clone(), "id1", "id3", "K1"),
            Some(vec!["K1".into(), "K2".into(), "K3".into()])
        );
        assert_eq!(path_between(edges, "id3", "id1", "K3"), None);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_tasks_is_walked_without_recursion() {
        let edges = (0..100_000).map(|n| (name(n), name(n + 1))).collect();
        let path = path_between(edges, "id0", "id100000", "K0").unwrap();
        assert_eq!(path.len(), 100_001);
    }
}
