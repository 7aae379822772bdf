//! Listings: computed states and orders.

use std::time::Duration;

use tenure_core::section::SectionMode;
use tenure_core::store::{ComputedState, SortBy, TaskEdit, TaskFilter, TaskOrder};
use tenure_core::task::TaskStatus;

use crate::fixture::Fixture;

pub(super) fn listings_are_sorted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("First", SectionMode::Parallel);
    for key in ["T10", "T2", "A-1"] {
        f.add_task(key);
        f.clock.advance(Duration::from_secs(1));
    }
    f.add_task_in("T1", Some(&section));
    let title = |key: &str, title: &str| {
        f.edit(key, &TaskEdit { title: Some(title.to_owned()), ..TaskEdit::default() });
        f.clock.advance(Duration::from_secs(1));
    };
    title("T2", "beta");
    title("T1", "Alpha");
    title("T10", "Gamma");
    title("A-1", "beta");
    f.edit("T10", &TaskEdit { priority: Some(500), ..TaskEdit::default() });
    f.override_status(&f.bare("ann"), "T2", TaskStatus::Completed, false).unwrap();
    let list = |by: SortBy, descending: bool, limit: u64| {
        let order = TaskOrder { by, descending };
        let filter = TaskFilter { order, limit, ..TaskFilter::default() };
        let (tasks, total) = f.read(|view| view.list_tasks(&filter, &f.viewer(view, None)));
        assert_eq!(total, 4);
        tasks.into_iter().map(|task| task.key).collect::<Vec<_>>()
    };
    for (by, expected) in [
        (SortBy::Working, ["T2", "A-1", "T10", "T1"]),
        (SortBy::Key, ["A-1", "T1", "T2", "T10"]),
        (SortBy::Title, ["T1", "T2", "A-1", "T10"]),
        (SortBy::Status, ["A-1", "T10", "T1", "T2"]),
        (SortBy::Priority, ["T2", "A-1", "T1", "T10"]),
        (SortBy::Created, ["T10", "T2", "A-1", "T1"]),
        (SortBy::Updated, ["T1", "A-1", "T2", "T10"]),
    ] {
        let mut found = list(by, true, 100);
        found.reverse();
        // Tasks that were changed at the same time are in working order.
        if by != SortBy::Updated {
            assert_eq!(list(by, false, 100), expected, "{by:?}");
        }
        assert_eq!(found, list(by, false, 100), "{by:?} reversed");
        assert_eq!(list(by, true, 1), found[3..], "the page is taken after sorting by {by:?}");
    }
}

pub(super) fn computed_states_are_listed_beside_statuses(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (early, late) =
        (f.add_section("Early", SectionMode::Parallel), f.add_section("Late", SectionMode::Parallel));
    for key in ["FREE", "HELD", "LAPSED", "WAITS"] {
        f.add_task(key);
    }
    f.add_task_in("EARLY", Some(&early));
    f.add_task_in("LATE", Some(&late));
    f.add_task_in("DONE", Some(&late));
    f.write(|tx| tx.add_section_dependency(&late, &early).map(drop)).unwrap();
    f.depend("WAITS", "HELD");
    let ann = f.bare("ann");
    f.override_status(&ann, "DONE", TaskStatus::Completed, false).unwrap();
    f.claim(&ann, "LAPSED").unwrap();
    f.clock.advance(Duration::from_hours(2));
    f.claim(&ann, "HELD").unwrap();
    let list = |statuses: &[TaskStatus], states: &[ComputedState], limit: u64| {
        let filter = TaskFilter {
            statuses: Some(statuses.to_vec()),
            states: states.to_vec(),
            limit,
            ..TaskFilter::default()
        };
        let (tasks, total) = f.read(|view| view.list_tasks(&filter, &f.viewer(view, None)));
        (tasks.into_iter().map(|task| task.key).collect::<Vec<_>>().join(" "), total)
    };
    let (blocked, ready, lapsed) = (ComputedState::Blocked, ComputedState::Ready, ComputedState::Lapsed);
    for (statuses, states, expected) in [
        (&[][..], &[blocked][..], "WAITS LATE"),
        (&[], &[ready], "FREE LAPSED EARLY"),
        (&[], &[lapsed], "LAPSED"),
        (&[TaskStatus::Completed], &[blocked, lapsed], "LAPSED WAITS LATE DONE"),
        (&[TaskStatus::InProgress], &[], "HELD LAPSED"),
        (&[], &[], ""),
    ] {
        let total = expected.split_whitespace().count() as u64;
        assert_eq!(list(statuses, states, 100), (expected.to_owned(), total), "{statuses:?} {states:?}");
        let first = expected.split(' ').next().unwrap().to_owned();
        assert_eq!(list(statuses, states, 1), (first, total), "a page of {statuses:?} {states:?}");
    }
}
