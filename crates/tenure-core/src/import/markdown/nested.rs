//! Nested items: the outer item depends on the inner ones.

use std::collections::HashSet;

use super::super::ImportedTask;
use super::super::collect::Collector;

/// A task whose description may still be extended.
pub(super) struct Draft {
    pub(super) task: ImportedTask,
    /// The index of the enclosing item.
    pub(super) parent: Option<usize>,
    /// The column of its text, which is also the column of its description.
    pub(super) content: usize,
}

/// Makes every outer item depend on its direct children, except for children that depend on it.
pub(super) fn link(drafts: &mut [Draft], into: &mut Collector) {
    for at in 0..drafts.len() {
        let Some((child, parent)) = drafts.get(at).and_then(|child| Some((child, child.parent?))) else {
            continue;
        };
        if waits_for_an_outer_item(child, drafts) {
            let why = "the outer item does not depend on it";
            into.note(child.task.line, "nested item that depends on an outer one", why);
            continue;
        }
        let key = child.task.key.clone();
        if let Some(outer) = drafts.get_mut(parent) {
            match key {
                Some(key) => outer.task.depends_on.push(key),
                None => outer.task.depends_on_items.push(at),
            }
        }
    }
}

/// The number of steps is bounded by the indentation, so the total stays linear in the text.
fn waits_for_an_outer_item(child: &Draft, drafts: &[Draft]) -> bool {
    let keys: HashSet<&String> = child.task.depends_on.iter().collect();
    let mut outer = child.parent.filter(|_| !keys.is_empty());
    while let Some(draft) = outer.and_then(|at| drafts.get(at)) {
        if draft.task.key.as_ref().is_some_and(|key| keys.contains(key)) {
            return true;
        }
        outer = draft.parent;
    }
    false
}
