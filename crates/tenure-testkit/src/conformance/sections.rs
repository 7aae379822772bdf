//! The rules for sections.

use std::time::Duration;

use tenure_core::holder::Caller;
use tenure_core::id::SectionId;
use tenure_core::kernel::{self, Beat, Finish, Terms};
use tenure_core::lease::{EndReason, Lease, Resource};
use tenure_core::section::SectionMode;
use tenure_core::store::TaskFilter;
use tenure_core::task::TaskStatus;
use tenure_core::{Clock, ErrorCode};

use crate::fixture::{Fixture, TTL, refused};

/// A section with tasks A, B and C.
fn section(f: &Fixture, mode: SectionMode) -> SectionId {
    let id = f.add_section("S", mode);
    for key in ["A", "B", "C"] {
        f.add_task_in(key, Some(&id));
    }
    id
}

fn serial(fresh: &dyn Fn() -> Fixture) -> (Fixture, SectionId) {
    let f = fresh();
    let id = section(&f, SectionMode::Serial);
    (f, id)
}

fn held(f: &Fixture) -> Option<Lease> {
    f.section("S").lease
}

fn last_reason(f: &Fixture, id: &SectionId) -> Option<EndReason> {
    f.history(&Resource::section(id)).last().and_then(|lease| lease.ended.map(|(_, reason)| reason))
}

pub(super) fn claiming_in_a_serial_section_takes_the_section_for_the_same_holder(
    fresh: &dyn Fn() -> Fixture,
) {
    let (f, _) = serial(fresh);
    let grant = f.claim(&f.worker("ann", 7), "A").unwrap();
    let section = held(&f).unwrap();
    assert_eq!((&section.holder, &section.process), (&grant.lease.holder, &grant.lease.process));
    assert!(section.fence < grant.lease.fence, "section first");
}

pub(super) fn one_holder_works_in_a_serial_section_at_a_time(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    f.claim(&f.bare("ann"), "A").unwrap();
    assert_eq!(refused(f.claim(&f.bare("bob"), "B")), ErrorCode::SectionLocked);
    assert!(f.next(&f.bare("bob")).is_none());
    let b = f.id("B");
    for (name, ready) in [("ann", true), ("bob", false)] {
        f.read(|view| {
            let viewer = f.viewer(view, Some(&f.bare(name)));
            let (tasks, _) = view.list_tasks(&TaskFilter { limit: 10, ..TaskFilter::default() }, &viewer)?;
            let shown: Vec<bool> = tasks.iter().map(|task| task.ready).collect();
            assert_eq!(shown, [false, ready, ready], "A, B and C as seen by {name}");
            assert_eq!(view.task(&b, &viewer)?.map(|task| task.ready), Some(ready), "{name}");
            Ok(())
        });
    }
    assert!(f.claim(&f.bare("ann"), "B").is_ok(), "the same holder may claim several tasks");
    assert_eq!(f.next(&f.bare("ann")).unwrap().task.key, "C");
}

pub(super) fn a_refused_section_leaves_nothing_held(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    f.claim(&f.bare("ann"), "A").unwrap();
    f.claim(&f.bare("bob"), "B").unwrap_err();
    assert_eq!((f.status("B"), f.lease("B")), (TaskStatus::Pending, None), "L9: all or nothing");
    assert!(f.history(&Resource::task(&f.id("B"))).is_empty());
}

pub(super) fn a_parallel_section_admits_many_holders_and_has_no_lease(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    section(&f, SectionMode::Parallel);
    f.claim(&f.bare("ann"), "A").unwrap();
    f.claim(&f.bare("bob"), "B").unwrap();
    assert_eq!(held(&f), None);
}

pub(super) fn a_task_without_a_section_holds_none(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    f.add_task("X");
    f.claim(&f.bare("ann"), "X").unwrap();
    assert_eq!(held(&f), None);
    assert_eq!(f.task("X").section, None);
}

pub(super) fn the_section_expires_no_earlier_than_the_tasks_in_it(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    let ann = f.bare("ann");
    let hour = Duration::from_hours(1);
    let short = Terms { section_ttl: Duration::from_secs(1), ..Terms::new(TTL) };
    let no_earlier = |f: &Fixture| {
        let section = held(f).unwrap().expires_at;
        for key in ["A", "B", "C"] {
            let task = f.lease(key).map_or(section, |lease| lease.expires_at);
            assert!(section >= task, "{key} until {task}, the section until {section}");
        }
    };
    f.claim_on(&ann, "A", &short).unwrap();
    no_earlier(&f);
    f.claim_on(&ann, "B", &Terms { ttl: hour, ..short.clone() }).unwrap();
    no_earlier(&f);
    f.clock.advance(TTL / 2);
    f.renew(&ann, "A").unwrap();
    no_earlier(&f);
    f.beat(&ann, "A", Beat { ttl: Some(hour * 2), ..Beat::default() }).unwrap();
    no_earlier(&f);
    f.claim_on(&ann, "C", &short).unwrap();
    no_earlier(&f);
    f.clock.step_back(hour);
    f.renew(&ann, "A").unwrap();
    no_earlier(&f);
}

pub(super) fn the_section_is_renewed_with_its_tasks(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    for _ in 0..5 {
        f.clock.advance(TTL / 2);
        f.renew(&ann, "A").unwrap();
    }
    let section = held(&f).unwrap();
    assert_eq!((section.heartbeat_at, section.expires_at), (f.clock.now(), f.clock.now().after(TTL)));
    assert_eq!(refused(f.claim(&f.bare("bob"), "B")), ErrorCode::SectionLocked);
}

pub(super) fn the_section_ends_with_the_last_of_its_holders_tasks(fresh: &dyn Fn() -> Fixture) {
    let (f, id) = serial(fresh);
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    f.claim(&ann, "B").unwrap();
    f.done(&ann, "A").unwrap();
    assert!(held(&f).is_some());
    f.release(&ann, "B").unwrap();
    assert_eq!((held(&f), last_reason(&f, &id)), (None, Some(EndReason::Released)));
    assert!(f.claim(&f.bare("bob"), "B").is_ok());
}

pub(super) fn a_lapsed_task_does_not_keep_the_section(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    let long = Terms::new(TTL * 10);
    f.claim_on(&ann, "B", &long).unwrap();
    f.clock.advance(TTL);
    f.done(&ann, "B").unwrap();
    assert_eq!(held(&f), None, "A has expired and blocks nothing (L3)");
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "A");
}

pub(super) fn a_runner_keeps_the_section_from_task_to_task(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    let ann = f.worker("ann", 7);
    f.claim(&ann, "A").unwrap();
    let first = held(&f).unwrap();
    f.finish_keeping(&ann, "A", Finish::Done, true).unwrap();
    assert_eq!(held(&f).unwrap().fence, first.fence);
    assert!(f.next(&f.bare("bob")).is_none());
    assert_eq!(f.next(&ann).unwrap().task.key, "B");
    assert_eq!(held(&f).unwrap().fence, first.fence);
    f.finish_keeping(&ann, "B", Finish::Done, true).unwrap();
    let section = held(&f).unwrap();
    f.write(|tx| kernel::release_resource(tx, &f.context(), &section, EndReason::Released)).unwrap();
    assert_eq!(f.next(&f.bare("bob")).unwrap().task.key, "C");
}

pub(super) fn evicting_the_holder_of_a_section_ends_its_tasks_too(fresh: &dyn Fn() -> Fixture) {
    let (f, id) = serial(fresh);
    let ann = f.bare("ann");
    f.add_task("X");
    for key in ["A", "B", "X"] {
        f.claim(&ann, key).unwrap();
    }
    let bell = f.bell("ann");
    let terms = Terms { doorbell: Some(bell.clone()), ..Terms::new(TTL) };
    f.claim_on(&ann, "C", &terms).unwrap();
    let forced = f.force(&held(&f).unwrap()).unwrap();
    assert_eq!(forced.ended.len(), 4, "the section and three tasks");
    assert!(f.heard(&bell));
    for key in ["A", "B", "C"] {
        assert_eq!((f.status(key), f.lease(key)), (TaskStatus::Pending, None));
        let reason = f.history(&Resource::task(&f.id(key)))[0].ended.unwrap().1;
        assert_eq!(reason, EndReason::Forced);
    }
    assert_eq!(last_reason(&f, &id), Some(EndReason::Forced));
    assert!(f.lease("X").is_some(), "tasks outside of the section are kept");
    let section_ends = f
        .events()
        .into_iter()
        .filter(|e| e.detail["resource"] == format!("section:{id}") && e.detail["reason"].is_string());
    assert_eq!(section_ends.count(), 1, "its end has one event");
}

pub(super) fn the_section_of_a_dead_holder_is_freed_with_its_tasks(fresh: &dyn Fn() -> Fixture) {
    let (f, id) = serial(fresh);
    f.claim(&f.worker("ann", 7), "A").unwrap();
    f.world.kill(7);
    assert!(f.task("A").ready && f.task("B").ready);
    f.claim(&f.bare("bob"), "B").unwrap();
    assert_eq!(f.history(&Resource::section(&id))[0].ended.unwrap().1, EndReason::HolderDied);
    assert_eq!(held(&f).unwrap().holder.id, "bob");
    assert_eq!(refused(f.claim(&f.bare("cid"), "A")), ErrorCode::SectionLocked);
}

pub(super) fn the_death_of_one_process_does_not_free_a_section_that_its_name_still_holds(
    fresh: &dyn Fn() -> Fixture,
) {
    let runs = |f: &Fixture| f.worker("ann", 7);
    let scripts: [fn(&Fixture, &Caller, &Caller); 3] = [
        // A plain claim, then a run with heartbeats.
        |f, bare, run| {
            f.claim(bare, "A").unwrap();
            f.claim(run, "B").unwrap();
            f.renew(run, "B").unwrap();
        },
        // Two plain claims, one of which a run resumes.
        |f, bare, run| {
            f.claim(bare, "A").unwrap();
            f.claim(bare, "B").unwrap();
            f.claim(run, "B").unwrap();
        },
        // The reverse: the run resumes the first.
        |f, bare, run| {
            f.claim(bare, "B").unwrap();
            f.claim(run, "B").unwrap();
            // A plain claim next to a run is either refused or independent of the run's process.
            drop(f.claim(bare, "A"));
        },
    ];
    for script in scripts {
        let (f, _) = serial(fresh);
        script(&f, &f.bare("ann"), &runs(&f));
        f.world.kill(7);
        let ann_works = f.lease("A").is_some();
        assert_eq!(f.claim(&f.bare("bob"), "C").is_ok(), !ann_works, "one holder at a time");
    }
}

pub(super) fn a_lapsed_lease_of_the_same_name_does_not_keep_the_section_from_the_next(
    fresh: &dyn Fn() -> Fixture,
) {
    let (f, _) = serial(fresh);
    f.claim(&f.worker("ann", 7), "A").unwrap();
    f.clock.advance(TTL);
    let other = f.worker("ann", 8);
    f.claim(&other, "B").unwrap();
    f.renew(&other, "B").unwrap();
    f.world.kill(8);
    assert!(f.claim(&f.bare("bob"), "C").is_ok(), "the section ends with the only process working in it");
}

pub(super) fn a_clock_that_steps_back_does_not_bring_a_second_holder_into_the_section(
    fresh: &dyn Fn() -> Fixture,
) {
    let ways: [fn(&Fixture); 3] = [
        |f| drop(f.claim(&f.bare("bob"), "C").unwrap()),
        |f| drop(f.claim(&f.bare("bob"), "B").unwrap()),
        |f| {
            f.cleanup();
            f.claim(&f.bare("bob"), "C").unwrap();
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let (f, _) = serial(fresh);
        let ann = f.bare("ann");
        f.claim(&ann, "A").unwrap();
        f.claim(&ann, "B").unwrap();
        f.clock.advance(TTL);
        way(&f);
        f.clock.step_back(TTL);
        assert_eq!(refused(f.check(&ann, "A")), ErrorCode::LeaseLost, "case {number}: bob works there");
        assert!(f.done(&ann, "A").is_ok(), "case {number}: late, but not taken over");
    }
}

pub(super) fn two_processes_with_the_same_name_do_not_share_a_section(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    f.claim(&f.worker("ann", 7), "A").unwrap();
    assert_eq!(refused(f.claim(&f.worker("ann", 8), "B")), ErrorCode::SectionLocked);
    assert!(f.next(&f.worker("ann", 8)).is_none());
    f.add_task("X");
    assert_eq!(f.next(&f.worker("ann", 8)).unwrap().task.key, "X", "free work is still found");
}

pub(super) fn a_revived_task_brings_its_section_back(fresh: &dyn Fn() -> Fixture) {
    for cleaned in [false, true] {
        let (f, _) = serial(fresh);
        let ann = f.worker("ann", 7);
        f.claim(&ann, "A").unwrap();
        let before = held(&f).unwrap();
        f.clock.advance(TTL);
        if cleaned {
            f.cleanup();
            assert_eq!(held(&f), None);
        }
        f.revive(&ann, "A").unwrap();
        let section = held(&f).unwrap();
        assert_eq!(section.expires_at, f.clock.now().after(TTL));
        assert_eq!(
            section.fence, before.fence,
            "cleaned: {cleaned}: a heartbeat with the old fence still works"
        );
        assert_eq!(refused(f.claim(&f.bare("bob"), "B")), ErrorCode::SectionLocked);
    }
}

pub(super) fn nothing_is_revived_in_a_section_that_another_holder_has(fresh: &dyn Fn() -> Fixture) {
    for taker in ["bob", "ann"] {
        for cleaned in [false, true] {
            let (f, _) = serial(fresh);
            let ann = f.worker("ann", 7);
            f.claim(&ann, "A").unwrap();
            f.clock.advance(TTL);
            if cleaned {
                f.cleanup();
            }
            f.claim(&f.worker(taker, 8), "B").unwrap();
            assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost, "{taker}, cleaned: {cleaned}");
            assert_eq!(held(&f).unwrap().process, Some(f.world.process(8)));
        }
    }
}

pub(super) fn a_revival_does_not_overtake_waiters_for_the_section(fresh: &dyn Fn() -> Fixture) {
    for granted_since in [false, true] {
        let (f, id) = serial(fresh);
        let (ann, bob, cid) = (f.worker("ann", 7), f.worker("bob", 8), f.worker("cid", 9));
        f.claim(&ann, "A").unwrap();
        f.clock.advance(TTL);
        f.cleanup();
        if granted_since {
            f.claim(&bob, "B").unwrap();
            f.done(&bob, "B").unwrap();
        }
        f.wait_for(&cid, &Resource::ready(Some(&id)), "no-bell");
        assert_eq!(
            f.revive(&ann, "A").is_err(),
            granted_since,
            "it is a newcomer after another holder has worked there"
        );
    }
}

pub(super) fn a_late_finish_does_not_end_another_holders_section(fresh: &dyn Fn() -> Fixture) {
    let (f, _) = serial(fresh);
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    f.clock.advance(TTL);
    f.claim(&f.bare("bob"), "B").unwrap();
    f.done(&ann, "A").unwrap();
    assert_eq!(f.status("A"), TaskStatus::Completed);
    assert_eq!(held(&f).unwrap().holder.id, "bob");
}

pub(super) fn evicting_one_task_ends_the_section_only_if_it_was_the_last(fresh: &dyn Fn() -> Fixture) {
    let (f, id) = serial(fresh);
    let ann = f.bare("ann");
    f.claim(&ann, "A").unwrap();
    f.claim(&ann, "B").unwrap();
    f.force(&f.lease("A").unwrap()).unwrap();
    assert!(held(&f).is_some());
    f.force(&f.lease("B").unwrap()).unwrap();
    assert_eq!((held(&f), last_reason(&f, &id)), (None, Some(EndReason::Released)));
}

pub(super) fn every_grant_of_a_section_has_an_event(fresh: &dyn Fn() -> Fixture) {
    let (f, id) = serial(fresh);
    let ann = f.worker("ann", 7);
    let long = Terms { section_ttl: TTL * 10, ..Terms::new(TTL) };
    f.claim_on(&ann, "A", &long).unwrap();
    f.clock.advance(TTL);
    f.cleanup();
    f.revive(&ann, "A").unwrap();
    f.done(&ann, "A").unwrap();
    f.claim(&f.bare("bob"), "B").unwrap();
    let events: Vec<_> = f
        .events()
        .into_iter()
        .filter(|e| e.kind == tenure_core::event::EventKind::LeaseAcquired)
        .filter(|e| e.detail["resource"] == format!("section:{id}"))
        .filter_map(|e| e.fence)
        .collect();
    let granted: Vec<_> = f.history(&Resource::section(&id)).iter().map(|lease| lease.fence).collect();
    assert_eq!(events, granted);
}

pub(super) fn sections_are_blocked_by_the_sections_they_depend_on(fresh: &dyn Fn() -> Fixture) {
    let (f, first) = serial(fresh);
    let second = f.add_section("T", SectionMode::Parallel);
    f.add_task_in("X", Some(&second));
    f.write(|tx| tx.add_section_dependency(&second, &first)).unwrap();
    assert_eq!(refused(f.claim(&f.bare("ann"), "X")), ErrorCode::NotReady);
    assert_eq!(f.task("X").blocked_by, ["section:S"]);
    for (key, to) in [("A", TaskStatus::Completed), ("B", TaskStatus::Skipped), ("C", TaskStatus::Completed)]
    {
        assert!(!f.task("X").ready);
        f.override_status(&f.bare("ann"), key, to, false).unwrap();
    }
    assert!(f.claim(&f.bare("ann"), "X").is_ok());
}
