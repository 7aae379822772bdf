//! Which edits a lease prevents, aborted and released work, and the repairs of a reconcile.

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{Fence, TaskId};
use tenure_core::kernel;
use tenure_core::lease::{AttemptState, EndReason, Resource};
use tenure_core::parking::{Cost, CountedAttempt, Parking, Subject};
use tenure_core::rules::{self, EditSection, EditTask};
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::section::SectionMode;
use tenure_core::store::EventFilter;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, Ending, ErrorCode};

use super::events::check_feed;
use crate::fixture::{Fixture, TESTER, TTL, refused};

pub(super) fn a_section_in_which_anything_is_leased_is_not_made_serial(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Parallel);
    f.add_task_in("A", Some(&section));
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    let edit = EditSection { mode: Some(SectionMode::Serial), ..EditSection::default() };
    let change = || f.write(|tx| rules::edit_section(tx, &f.context(), &ann, "S", &edit));
    assert_eq!(refused(change()).exit_code(), 6);
    f.clock.advance(TTL);
    assert_eq!(change().unwrap().mode, SectionMode::Serial, "a lapsed lease does not count");
}

pub(super) fn a_held_section_is_made_parallel_and_its_holder_goes_on(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    for key in ["A", "B"] {
        f.add_task_in(key, Some(&section));
    }
    let (ann, bob) = (f.bare("ann"), f.bare("bob"));
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    assert_eq!(refused(f.claim(&bob, "B")).exit_code(), 6);
    let edit = EditSection { mode: Some(SectionMode::Parallel), ..EditSection::default() };
    let changed = f.write(|tx| rules::edit_section(tx, &f.context(), &bob, "S", &edit)).unwrap();
    assert_eq!((changed.mode, changed.lease), (SectionMode::Parallel, None));
    assert_eq!(f.history(&Resource::section(&section))[0].ended.unwrap().1, EndReason::Released);
    f.claim(&bob, "B").unwrap();
    // Neither a renewal nor the finish of the first holder depends on the section any more.
    f.clock.advance(TTL / 2);
    f.renew(&ann, "A").unwrap();
    assert_eq!(f.lease("A").unwrap().fence, fence);
    f.done(&ann, "A").unwrap();
    assert_eq!(f.status("B"), TaskStatus::InProgress);
}

pub(super) fn a_held_task_is_not_moved_not_even_by_its_holder(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_section("T", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.claim(&f.bare("ann"), "A").unwrap();
    let edit = EditTask { section: Some(Some("T".to_owned())), ..EditTask::default() };
    for name in ["ann", "bob"] {
        let caller = f.bare(name);
        let answer = f.write(|tx| rules::edit_task(tx, &f.context(), &caller, "A", &edit));
        assert_eq!(refused(answer), ErrorCode::TaskLocked, "{name}");
    }
    assert_eq!(f.task("A").section.unwrap().name, "S");
}

pub(super) fn moving_a_task_ends_the_lease_that_has_lapsed_on_it(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_section("T", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    let ann = f.bare("ann");
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    f.clock.advance(TTL);
    let edit = EditTask { section: Some(Some("T".to_owned())), ..EditTask::default() };
    let moved = f.write(|tx| rules::edit_task(tx, &f.context(), &f.bare("bob"), "A", &edit)).unwrap();
    assert_eq!((moved.section.unwrap().name.as_str(), moved.status), ("T", TaskStatus::Pending));
    assert_eq!(moved.lease, None);
    // Neither a clock that steps back nor a late finish revives it.
    f.clock.step_back(TTL);
    assert_eq!(f.lease("A"), None);
    assert!(f.claim(&f.bare("cid"), "A").unwrap().lease.fence > fence);
    assert_eq!(refused(f.done(&ann, "A")).exit_code(), 8);
}

pub(super) fn a_held_task_and_a_held_section_are_not_deleted(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.claim(&f.bare("ann"), "A").unwrap();
    let bob = f.bare("bob");
    let task = f.write(|tx| rules::delete_task(tx, &f.context(), &bob, "A", false));
    assert_eq!(refused(task), ErrorCode::TaskLocked);
    let section = f.write(|tx| rules::delete_section(tx, &f.context(), &bob, "S"));
    assert_eq!(refused(section).exit_code(), 6);
}

pub(super) fn releasing_a_section_returns_its_tasks(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let section = f.add_section("S", SectionMode::Serial);
    f.add_task_in("A", Some(&section));
    f.claim(&f.bare("ann"), "A").unwrap();
    let own = f.section("S").lease.unwrap();
    let gone = f.write(|tx| kernel::release(tx, &f.context(), "ann", &own)).unwrap();
    assert_eq!(gone.ended.len(), 2);
    assert_eq!((f.status("A"), f.section("S").lease), (TaskStatus::Pending, None));
    let reason = f.history(&Resource::section(&section))[0].ended.unwrap().1;
    assert_eq!(reason, EndReason::Released);
}

pub(super) fn one_reconcile_repairs_what_a_crash_left(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B"] {
        f.add_task(key);
    }
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let lease = f.claim(&ann, "A").unwrap().lease;
    f.begin_attempt(&lease, &ann);
    f.wait_for(&bob, &lease.resource, "no-bell");
    let id = f.id("B");
    // A state that no rule writes: in progress without a lease.
    f.write(|tx| {
        let event = NewEvent::new(EventKind::TaskStatus, TESTER).task(&id);
        tx.set_status(&id, TaskStatus::InProgress, event.status(TaskStatus::Pending, TaskStatus::InProgress))
    })
    .unwrap();
    f.write(|tx| tx.save_runner(&runner(&f, 7))).unwrap();
    f.world.kill(7);
    f.world.kill(8);
    let repairs = f.write(|tx| kernel::reconcile(tx, &f.context(), TESTER)).unwrap();
    assert_eq!((repairs.leases.len(), repairs.tasks.len(), repairs.runners.len()), (1, 1, 1));
    assert_eq!(repairs.attempts.len(), 1, "its processes have to be reaped");
    assert_eq!(repairs.attempts[0].state, AttemptState::Ending);
    assert_eq!((f.status("A"), f.status("B")), (TaskStatus::Pending, TaskStatus::Pending));
    assert_eq!(f.read(|view| view.count_tickets()), 0);
    let attempt = &repairs.attempts[0];
    f.write(|tx| kernel::end_attempt(tx, &f.context(), attempt, &kernel::Outcome::default(), TESTER))
        .unwrap();
    let again = f.write(|tx| kernel::reconcile(tx, &f.context(), TESTER)).unwrap();
    assert!(again.is_empty(), "{again:?}");
    check_feed(&f);
}

pub(super) fn runner(f: &Fixture, pid: u32) -> Runner {
    Runner {
        id: format!("runner-{pid}"),
        status: RunnerStatus::Running,
        process: f.world.process(pid),
        project_path: "somewhere".to_owned(),
        section: None,
        preset: "mine".to_owned(),
        current_task: None,
        log_path: Some("log".to_owned()),
        started_at: f.clock.now(),
        heartbeat_at: f.clock.now(),
        completed_at: None,
        error: None,
    }
}

pub(super) fn runners_and_presets_are_read_as_they_were_written(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let first = runner(&f, 1);
    f.write(|tx| tx.save_runner(&first)).unwrap();
    f.clock.advance(TTL);
    let second = runner(&f, 2);
    f.write(|tx| tx.save_runner(&second)).unwrap();
    assert_eq!(f.read(|view| view.runners(0)), [second.clone(), first.clone()], "newest first");
    let over = Runner { status: RunnerStatus::Completed, completed_at: Some(f.clock.now()), ..first };
    f.write(|tx| tx.save_runner(&over)).unwrap();
    assert_eq!(f.read(|view| view.runners(0)), [second]);
    assert_eq!(f.read(|view| view.runners(1)).len(), 2);
    assert_eq!(f.read(|view| view.runner("runner-1")), Some(over));
    assert_eq!(f.read(|view| view.runner("nobody")), None);
    let subject = Subject::Account("claude".to_owned());
    let task = TaskId::new("t1");
    let parking = Parking {
        subject: subject.clone(),
        ending: Some(Ending::Limited),
        in_a_row: 3,
        attempts: vec![CountedAttempt { task, fence: Fence::new(7), cost: Cost::Attempt }],
        parked_at: Some(f.clock.now()),
        next_try_at: Some(f.clock.now().after(TTL)),
        resets_at: Some(f.clock.now().after(TTL)),
        times_parked: 1,
        reason: Some("no login".to_owned()),
        until_changed: Some("fingerprint".to_owned()),
        probe: Some(Fence::new(8)),
    };
    f.write(|tx| tx.save_parking(&parking)).unwrap();
    assert_eq!(f.read(|view| view.parking(&subject)), Some(parking.clone()));
    assert_eq!(f.read(|view| view.parking(&Subject::Preset("claude".to_owned()))), None);
    assert_eq!(f.read(|view| view.parked()), std::slice::from_ref(&parking));
    f.write(|tx| tx.save_parking(&Parking::new(subject.clone()))).unwrap();
    assert!(f.read(|view| view.parked()).is_empty());
}

pub(super) fn dependents_tickets_and_events_are_listed(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    for key in ["A", "B", "C"] {
        f.add_task(key);
    }
    f.depend("B", "A");
    f.depend("C", "A");
    let id = f.id("A");
    let mut keys: Vec<_> = f.read(|view| view.dependents(&id)).into_iter().map(|name| name.key).collect();
    keys.sort();
    assert_eq!(keys, ["B", "C"]);
    f.wait_for(&f.worker("bob", 2), &Resource::task(&id), "no-bell");
    f.wait_for(&f.worker("cid", 3), &Resource::task(&f.id("B")), "no-bell");
    assert_eq!(f.read(|view| view.all_tickets()).len(), 2);
    let of = EventFilter { task: Some(id), limit: 0, ..EventFilter::default() };
    assert_eq!(f.read(|view| view.count_events(&of)), 1, "regardless of the limit");
}
