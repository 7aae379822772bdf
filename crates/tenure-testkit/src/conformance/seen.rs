//! A change that is based on an earlier view of a task is refused if the task has changed since.

use std::time::Duration;

use tenure_core::ErrorCode;
use tenure_core::rules::{EditTask, Seen, check_seen, edit_task};
use tenure_core::store::TaskLookup;

use crate::fixture::{Fixture, refused};

/// The task A as a page would show it.
fn shown(f: &Fixture) -> Seen {
    let task = f.task("A");
    Seen { updated_at: task.updated_at, fence: task.lease.map(|lease| lease.fence) }
}

fn check(f: &Fixture, seen: &Seen) -> tenure_core::Result<()> {
    f.write(|tx| {
        let name = tx.find_tasks(TaskLookup::Key("A"), 1)?.remove(0);
        check_seen(tx, &name, seen)
    })
}

pub(super) fn a_task_that_has_changed_since_it_was_shown_is_recognised(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    let free = shown(&f);
    check(&f, &free).unwrap();
    f.clock.advance(Duration::from_secs(1));
    let edit = EditTask { title: Some("Other".to_owned()), ..EditTask::default() };
    f.write(|tx| edit_task(tx, &f.context(), &ann, "A", &edit)).unwrap();
    assert_eq!(refused(check(&f, &free)), ErrorCode::Changed, "it was edited");
    let edited = shown(&f);
    f.clock.advance(Duration::from_secs(1));
    let granted = f.claim(&ann, "A").unwrap();
    assert_eq!(refused(check(&f, &edited)), ErrorCode::Changed, "it was claimed");
    let held = shown(&f);
    assert_eq!(held.fence, Some(granted.lease.fence));
    check(&f, &held).unwrap();
    let other = Seen { fence: None, ..held };
    assert_eq!(refused(check(&f, &other)), ErrorCode::Changed, "another lease is open");
}
