//! T1: every status change has its event, and every such event its status change.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::event::{Event, EventKind, NewEvent};
use tenure_core::id::TaskId;
use tenure_core::kernel::Finish;
use tenure_core::lease::{Resource, ResourceKind};
use tenure_core::store::{EventFilter, LeaseFilter, TaskFilter};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TESTER, TTL};

/// Replays the feed and returns the resulting status of each task. Every change must start from the previous status.
pub fn replayed_statuses(events: &[Event]) -> BTreeMap<TaskId, TaskStatus> {
    let mut statuses = BTreeMap::new();
    for event in events {
        let Some(id) = &event.task else { continue };
        match event.kind {
            EventKind::TaskCreated => drop(statuses.insert(id.clone(), TaskStatus::Pending)),
            EventKind::TaskDeleted => drop(statuses.remove(id)),
            EventKind::TaskStatus => {
                let before = statuses.get(id).copied();
                assert_eq!(event.from, before, "{event:?} does not start from the previous status");
                let to = event.to.unwrap();
                assert_ne!(event.from, Some(to), "{event:?} is not a change");
                statuses.insert(id.clone(), to);
            }
            _ => {}
        }
    }
    statuses
}

/// Replaying the feed gives the stored statuses, every task in progress has a lease, and every lease has its event.
pub fn check_feed(f: &Fixture) {
    let filter = TaskFilter { limit: u64::from(u32::MAX), ..TaskFilter::default() };
    let (tasks, _) = f.read(|view| view.list_tasks(&filter, &f.viewer(view, None)));
    let events = f.events();
    let stored: BTreeMap<_, _> = tasks.iter().map(|task| (task.id.clone(), task.status)).collect();
    assert_eq!(replayed_statuses(&events), stored);
    for task in &tasks {
        let in_progress = task.status == TaskStatus::InProgress;
        assert_eq!(in_progress, task.lease.is_some(), "{}: {} with {:?}", task.key, task.status, task.lease);
    }
    let all = LeaseFilter { include_ended: true, ..LeaseFilter::default() };
    let granted: Vec<_> = f.read(|view| view.leases(&all)).iter().map(|lease| lease.fence).collect();
    let events: Vec<_> =
        events.iter().filter(|e| e.kind == EventKind::LeaseAcquired).filter_map(|e| e.fence).collect();
    assert_eq!(events, granted, "every grant has its event");
}

pub(super) fn an_event_of_every_kind_can_be_stored(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for kind in EventKind::ALL {
        f.write(|tx| tx.append(NewEvent::new(*kind, TESTER))).unwrap();
    }
    let events = f.events();
    let stored: Vec<_> = events.iter().filter(|e| e.actor == TESTER).map(|e| e.kind).collect();
    assert_eq!(stored, EventKind::ALL);
}

pub(super) fn every_change_of_status_has_exactly_one_event(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let ann = f.bare("ann");
    let steps: [fn(&Fixture, &tenure_core::holder::Caller); 12] = [
        |f, ann| drop(f.claim(ann, "A").unwrap()),
        |f, ann| drop(f.claim(ann, "A").unwrap()),
        |f, ann| drop(f.renew(ann, "A").unwrap()),
        |f, ann| drop(f.release(ann, "A").unwrap()),
        |f, ann| drop(f.release(ann, "A").unwrap()),
        |f, ann| drop(f.claim(ann, "A").unwrap()),
        |f, _| f.clock.advance(TTL),
        |f, _| drop(f.claim(&f.bare("bob"), "A").unwrap()),
        |f, _| drop(f.force(&f.lease("A").unwrap()).unwrap()),
        |f, ann| drop(f.claim(ann, "A").unwrap()),
        |f, ann| drop(f.finish(ann, "A", Finish::Fail("no")).unwrap()),
        |f, ann| drop(f.override_status(ann, "A", TaskStatus::Pending, false).unwrap()),
    ];
    for step in steps {
        let (before, events) = (f.status("A"), f.events().len());
        step(&f, &ann);
        let events: Vec<_> =
            f.events().into_iter().skip(events).filter(|e| e.kind == EventKind::TaskStatus).collect();
        let moved = events.len();
        match f.status("A") {
            // A takeover first returns the task to the status it was claimed from: two changes, each with an event.
            TaskStatus::InProgress if before == TaskStatus::InProgress => assert!(moved == 0 || moved == 2),
            after => assert_eq!(moved, usize::from(after != before), "{before} to {after}"),
        }
        check_feed(&f);
    }
}

pub(super) fn a_status_event_records_actor_time_change_reason_and_fence(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = f.add_task("A");
    let ann = f.bare("ann");
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    f.clock.advance(TTL / 2);
    f.finish(&ann, "A", Finish::Fail("the disk is full")).unwrap();
    let last = f.events().into_iter().rfind(|e| e.kind == EventKind::TaskStatus).unwrap();
    assert_eq!((last.actor.as_str(), last.at), ("ann", tenure_core::Clock::now(&*f.clock)));
    assert_eq!((last.from, last.to), (Some(TaskStatus::InProgress), Some(TaskStatus::Failed)));
    assert_eq!((last.task, last.fence), (Some(id), Some(fence)));
    assert_eq!(last.detail["message"], "the disk is full");
}

pub(super) fn a_refused_change_writes_no_event(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.add_task("B");
    f.depend("B", "A");
    f.claim(&f.bare("ann"), "A").unwrap();
    let before = f.events();
    let bob = f.bare("bob");
    f.claim(&bob, "A").unwrap_err();
    f.claim(&bob, "B").unwrap_err();
    f.done(&bob, "A").unwrap_err();
    f.renew(&bob, "A").unwrap_err();
    f.override_status(&bob, "A", TaskStatus::Skipped, false).unwrap_err();
    assert!(f.next(&bob).is_none());
    assert_eq!(f.events(), before);
}

pub(super) fn the_feed_is_read_forward_from_a_number_and_backward_from_the_end(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (a, b) = (f.add_task("A"), f.add_task("B"));
    f.claim(&f.bare("ann"), "A").unwrap();
    let all = f.events();
    assert!(all.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    let read = |filter: EventFilter| f.read(|view| view.events(&filter));
    let since = all[0].seq;
    assert_eq!(read(EventFilter { since, limit: 2, ..EventFilter::default() }), all[1..3]);
    assert_eq!(
        read(EventFilter { last: true, limit: 2, ..EventFilter::default() }),
        all[all.len() - 2..],
        "in order"
    );
    let of =
        |task: &TaskId| read(EventFilter { task: Some(task.clone()), limit: 9, ..EventFilter::default() });
    assert_eq!(of(&b).len(), 1);
    assert!(of(&a).len() >= 3 && of(&a).iter().all(|event| event.task.as_ref() == Some(&a)));
}

pub(super) fn the_feed_is_filtered_by_kind_actor_and_time(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    f.claim(&f.bare("ann"), "A").unwrap();
    f.clock.advance(Duration::from_mins(1));
    f.release(&f.bare("ann"), "A").unwrap();
    f.claim(&f.bare("bob"), "A").unwrap();
    let all = f.events();
    let check = |filter: EventFilter, fits: &dyn Fn(&Event) -> bool| {
        let filter = EventFilter { limit: 100, ..filter };
        let expected: Vec<Event> = all.iter().filter(|event| fits(event)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{filter:?} selects some");
        assert_eq!(f.read(|view| view.events(&filter)), expected, "{filter:?}");
        let count = f.read(|view| view.count_events(&filter));
        assert_eq!(count, expected.len() as u64, "{filter:?}");
        let last = EventFilter { last: true, limit: 1, ..filter };
        assert_eq!(f.read(|view| view.events(&last)), expected[expected.len() - 1..], "{last:?}");
    };
    let (acquired, ended) = (EventKind::LeaseAcquired, EventKind::LeaseEnded);
    check(EventFilter { kinds: vec![acquired], ..EventFilter::default() }, &|e| e.kind == acquired);
    check(EventFilter { kinds: vec![acquired, ended], ..EventFilter::default() }, &|e| {
        [acquired, ended].contains(&e.kind)
    });
    check(EventFilter { actor: Some("bob".to_owned()), ..EventFilter::default() }, &|e| e.actor == "bob");
    let at = all.iter().find(|event| event.kind == ended).unwrap().at;
    check(EventFilter { not_before: Some(at), ..EventFilter::default() }, &|e| e.at >= at);
    check(
        EventFilter {
            since: all[0].seq,
            not_before: Some(at),
            kinds: vec![acquired],
            actor: Some("bob".to_owned()),
            ..EventFilter::default()
        },
        &|e| e.kind == acquired && e.actor == "bob",
    );
    let nobody = EventFilter { actor: Some("carl".to_owned()), limit: 9, ..EventFilter::default() };
    assert_eq!(f.read(|view| view.events(&nobody)), []);
}

pub(super) fn closed_leases_stay_as_the_audit_trail(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let id = f.add_task("A");
    for n in 0..5 {
        let caller = f.bare(&format!("agent{n}"));
        f.claim(&caller, "A").unwrap();
        f.release(&caller, "A").unwrap();
    }
    let history = f.history(&Resource::new(ResourceKind::Task, id.as_str()));
    let names: Vec<_> = history.iter().map(|lease| lease.holder.id.as_str()).collect();
    assert_eq!(names, ["agent0", "agent1", "agent2", "agent3", "agent4"]);
    assert!(history.iter().all(|lease| !lease.is_open()));
}
