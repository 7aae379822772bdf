//! Items within items: the outer one waits for the inner ones.

use std::collections::HashSet;

use super::super::ImportedTask;
use super::super::collect::Collector;

/// A task whose description may still grow.
pub(super) struct Draft {
    pub(super) task: ImportedTask,
    /// The position of the item around it.
    pub(super) parent: Option<usize>,
    /// Where its text begins, and its description with it.
    pub(super) content: usize,
}

/// Makes every outer item wait for its direct parts, except for those that wait for it themselves.
pub(super) fn link(drafts: &mut [Draft], into: &mut Collector) {
    for at in 0..drafts.len() {
        let Some((child, parent)) = drafts.get(at).and_then(|child| Some((child, child.parent?))) else {
            continue;
        };
        if waits_for_an_outer_item(child, drafts) {
            let why = "the outer item does not wait for it";
            into.note(child.task.line, "nested item that waits for an outer one", why);
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

/// Climbs no higher than the item is indented, so the whole stays linear in the text.
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
