//! Each branch of the holder's finish (L8).

use tenure_core::ErrorCode;
use tenure_core::event::EventKind;
use tenure_core::holder::{Caller, Holder};
use tenure_core::id::Ids;
use tenure_core::kernel::{Finish, Finished, Terms};
use tenure_core::lease::{EndReason, Resource};
use tenure_core::rules::{EditTask, edit_task};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TTL, refused};

const FINISHES: [(Finish<'static>, TaskStatus, EndReason); 4] = [
    (Finish::Done, TaskStatus::Completed, EndReason::Completed),
    (Finish::Review, TaskStatus::Review, EndReason::Completed),
    (Finish::Fail("it broke"), TaskStatus::Failed, EndReason::Completed),
    (Finish::Release(Some("later")), TaskStatus::Pending, EndReason::Released),
];

/// Claims A for ann and returns a caller that presents the fence.
fn claimed(f: &Fixture) -> Caller {
    if f.read(|view| view.count_tasks()).is_empty() {
        f.add_task("A");
    }
    let ann = f.bare("ann");
    let fence = f.claim(&ann, "A").unwrap().lease.fence;
    ann.with_fence(Some(fence))
}

fn applied(answer: tenure_core::Result<Finished>) -> bool {
    answer.unwrap().changed
}

fn last_reason(f: &Fixture) -> EndReason {
    f.history(&Resource::task(&f.id("A"))).last().unwrap().ended.unwrap().1
}

pub(super) fn each_finish_sets_its_status_and_ends_the_lease(fresh: &dyn Fn() -> Fixture) {
    for (finish, status, reason) in FINISHES {
        let f = fresh();
        let ann = claimed(&f);
        assert!(applied(f.finish(&ann, "A", finish)));
        assert_eq!((f.status("A"), f.lease("A"), last_reason(&f)), (status, None, reason));
    }
}

pub(super) fn done_leads_to_review_if_review_is_enabled(fresh: &dyn Fn() -> Fixture) {
    let mut f = fresh();
    f.policy.review = true;
    let ann = claimed(&f);
    f.done(&ann, "A").unwrap();
    assert_eq!(f.status("A"), TaskStatus::Review);
}

pub(super) fn a_rejection_returns_the_task_and_fails_it_at_the_limit(fresh: &dyn Fn() -> Fixture) {
    let mut f = fresh();
    f.policy.max_rejections = 2;
    f.add_task("A");
    for (round, status) in [(1, TaskStatus::Pending), (2, TaskStatus::Failed)] {
        f.override_status(&f.bare("ann"), "A", TaskStatus::Review, false).unwrap();
        let bob = f.bare("bob");
        let terms = Terms { review: true, ..Terms::new(TTL) };
        let fence = f.claim_on(&bob, "A", &terms).unwrap().lease.fence;
        let bob = bob.with_fence(Some(fence));
        assert!(applied(f.finish(&bob, "A", Finish::Reject("too short"))));
        assert!(!applied(f.finish(&bob, "A", Finish::Reject("too short"))), "repeated");
        assert_eq!((f.status("A"), f.task("A").rejections, f.lease("A")), (status, round, None));
        let events = f.events().into_iter().rfind(|e| e.kind == EventKind::TaskStatus).unwrap();
        assert_eq!(
            (&events.detail["message"], &events.detail["rejected"]),
            (&"too short".into(), &true.into())
        );
    }
}

pub(super) fn a_rejection_outside_of_a_review_is_a_failure(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = claimed(&f);
    f.finish(&ann, "A", Finish::Reject("no")).unwrap();
    assert_eq!((f.status("A"), f.task("A").rejections), (TaskStatus::Failed, 0));
}

pub(super) fn only_the_holder_can_finish(fresh: &dyn Fn() -> Fixture) {
    for (finish, ..) in FINISHES {
        let f = fresh();
        claimed(&f);
        let before = f.events().len();
        assert_eq!(refused(f.finish(&f.bare("bob"), "A", finish)), ErrorCode::NotHolder);
        assert_eq!((f.status("A"), f.events().len()), (TaskStatus::InProgress, before));
    }
}

pub(super) fn a_late_finish_counts_unless_the_task_was_taken_over(fresh: &dyn Fn() -> Fixture) {
    for (finish, status, reason) in FINISHES {
        for cleaned in [false, true] {
            let f = fresh();
            let ann = claimed(&f);
            f.clock.advance(TTL * 5);
            if cleaned {
                f.cleanup();
                assert_eq!((f.status("A"), last_reason(&f)), (TaskStatus::Pending, EndReason::Expired));
            }
            assert!(applied(f.finish(&ann, "A", finish)), "{finish:?}, cleaned: {cleaned}");
            assert_eq!((f.status("A"), last_reason(&f)), (status, reason), "cleaned: {cleaned}");
        }
    }
}

pub(super) fn a_late_finish_without_a_fence_counts_by_name(fresh: &dyn Fn() -> Fixture) {
    for cleaned in [false, true] {
        let f = fresh();
        claimed(&f);
        f.clock.advance(TTL);
        if cleaned {
            f.cleanup();
        }
        assert!(applied(f.done(&f.bare("ann"), "A")));
        assert_eq!(f.status("A"), TaskStatus::Completed);
    }
}

pub(super) fn a_late_finish_is_refused_after_a_takeover(fresh: &dyn Fn() -> Fixture) {
    for (finish, ..) in FINISHES {
        let f = fresh();
        let ann = claimed(&f);
        f.clock.advance(TTL);
        f.claim(&f.bare("bob"), "A").unwrap();
        let events = f.events().len();
        assert_eq!(refused(f.finish(&ann, "A", finish)), ErrorCode::LeaseLost);
        assert_eq!((f.status("A"), f.events().len()), (TaskStatus::InProgress, events));
        assert_eq!(f.lease("A").unwrap().holder.id, "bob");
        f.release(&f.bare("bob"), "A").unwrap();
        assert_eq!(
            refused(f.finish(&ann, "A", finish)),
            ErrorCode::LeaseLost,
            "also after bob has released it"
        );
        assert_eq!(f.status("A"), TaskStatus::Pending);
    }
}

pub(super) fn a_late_finish_is_refused_after_the_status_was_changed(fresh: &dyn Fn() -> Fixture) {
    for (finish, ..) in FINISHES {
        for cleaned in [false, true] {
            let f = fresh();
            let ann = claimed(&f);
            f.clock.advance(TTL);
            if cleaned {
                f.cleanup();
            }
            f.override_status(&f.bare("bob"), "A", TaskStatus::Skipped, false).unwrap();
            assert_eq!(refused(f.finish(&ann, "A", finish)), ErrorCode::LeaseLost);
            assert_eq!(f.status("A"), TaskStatus::Skipped);
        }
    }
}

/// The status is the same as before, but a person has changed it in between.
pub(super) fn a_late_finish_is_refused_after_a_decision_even_if_the_status_is_as_before(
    fresh: &dyn Fn() -> Fixture,
) {
    let decisions: [&[TaskStatus]; 4] = [
        &[TaskStatus::Skipped, TaskStatus::Pending],
        &[TaskStatus::Completed, TaskStatus::Pending],
        &[TaskStatus::Pending],
        &[TaskStatus::Review, TaskStatus::Failed, TaskStatus::Pending],
    ];
    for (finish, ..) in FINISHES {
        for (decided, cleaned) in decisions.iter().flat_map(|decided| [(decided, false), (decided, true)]) {
            let f = fresh();
            let ann = claimed(&f);
            f.clock.advance(TTL);
            if cleaned {
                f.cleanup();
            }
            for to in *decided {
                f.override_status(&f.bare("bob"), "A", *to, false).unwrap();
            }
            let events = f.events().len();
            let case = format!("{finish:?} after {decided:?}, cleaned: {cleaned}");
            assert_eq!(refused(f.finish(&ann, "A", finish)), ErrorCode::LeaseLost, "{case}");
            assert_eq!(refused(f.revive(&ann, "A")), ErrorCode::LeaseLost, "{case}");
            assert_eq!(refused(f.done(&f.bare("ann"), "A")), ErrorCode::LeaseLost, "by name; {case}");
            assert_eq!((f.status("A"), f.events().len()), (TaskStatus::Pending, events), "{case}");
            assert_eq!(last_reason(&f), EndReason::Forced, "{case}");
        }
    }
}

pub(super) fn an_edit_of_the_text_is_no_decision_and_a_late_finish_counts(fresh: &dyn Fn() -> Fixture) {
    for cleaned in [false, true] {
        let f = fresh();
        let ann = claimed(&f);
        f.clock.advance(TTL);
        if cleaned {
            f.cleanup();
        }
        let edit = EditTask { title: Some("Another title".to_owned()), ..EditTask::default() };
        f.write(|tx| edit_task(tx, &f.context(), &f.bare("bob"), "A", &edit)).unwrap();
        assert!(applied(f.done(&ann, "A")), "cleaned: {cleaned}");
    }
}

pub(super) fn an_evicted_holder_cannot_finish(fresh: &dyn Fn() -> Fixture) {
    for (finish, ..) in FINISHES {
        let f = fresh();
        let ann = claimed(&f);
        f.force(&f.lease("A").unwrap()).unwrap();
        assert_eq!(refused(f.finish(&ann, "A", finish)), ErrorCode::LeaseLost);
        assert_eq!((f.status("A"), last_reason(&f)), (TaskStatus::Pending, EndReason::Forced));
    }
}

pub(super) fn a_dead_holder_cannot_finish_whether_or_not_a_cleanup_ran(fresh: &dyn Fn() -> Fixture) {
    // (expired before the death, cleaned before the death, cleaned after it)
    let histories = [
        (false, false, false),
        (false, false, true),
        (true, false, false),
        (true, false, true),
        (true, true, false),
        (true, true, true),
    ];
    for history in histories {
        let (expired, cleaned_before, cleaned_after) = history;
        let f = fresh();
        f.add_task("A");
        let ann = f.worker("ann", 7);
        let proof = f.claim(&ann, "A").unwrap().proof();
        if expired {
            f.clock.advance(TTL);
        }
        if cleaned_before {
            f.cleanup();
        }
        f.world.kill(7);
        if cleaned_after {
            f.cleanup();
        }
        let child = f.bare("child").with_proof(Some(proof));
        assert_eq!(refused(f.done(&child, "A")), ErrorCode::LeaseLost, "{history:?}");
        assert_eq!(refused(f.revive(&child, "A")), ErrorCode::LeaseLost, "{history:?}");
    }
}

pub(super) fn a_repeated_finish_succeeds_and_writes_nothing(fresh: &dyn Fn() -> Fixture) {
    for (finish, status, reason) in FINISHES {
        let f = fresh();
        let ann = claimed(&f);
        f.finish(&ann, "A", finish).unwrap();
        let events = f.events();
        f.clock.advance(TTL);
        assert!(!applied(f.finish(&ann, "A", finish)));
        assert_eq!((f.status("A"), last_reason(&f)), (status, reason));
        assert_eq!(f.events(), events);
    }
}

pub(super) fn a_repeated_finish_succeeds_after_a_later_status_change(fresh: &dyn Fn() -> Fixture) {
    for (finish, ..) in FINISHES {
        let f = fresh();
        let ann = claimed(&f);
        f.finish(&ann, "A", finish).unwrap();
        f.override_status(&f.bare("bob"), "A", TaskStatus::Skipped, false).unwrap();
        let events = f.events();
        assert!(!applied(f.finish(&ann, "A", finish)), "{finish:?}");
        assert_eq!((f.status("A"), f.events()), (TaskStatus::Skipped, events));
    }
}

pub(super) fn a_task_that_agents_release_repeatedly_fails(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let runner = Caller::new(Holder::runner("r")).with_process(f.world.process(7));
    let release = Finish::Release(Some("not mine"));
    for (time, status) in [(1, TaskStatus::Pending), (2, TaskStatus::Pending), (3, TaskStatus::Failed)] {
        let proof = f.claim(&runner, "A").unwrap().proof();
        let agent = f.bare("agent").with_proof(Some(proof));
        assert!(applied(f.finish(&agent, "A", release)));
        assert_eq!((f.status("A"), f.task("A").attempts), (status, time));
    }

    // A release by the runner is not a failure of its agent, and a person may release any number of times.
    let f = fresh();
    f.add_task("A");
    for caller in [runner, f.bare("ann")] {
        for _ in 0..5 {
            f.claim(&caller, "A").unwrap();
            f.finish(&caller, "A", release).unwrap();
        }
        assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, 0));
    }
}

pub(super) fn a_second_different_finish_is_refused(fresh: &dyn Fn() -> Fixture) {
    for (first, status, _) in FINISHES {
        for (second, other, _) in FINISHES {
            // A repeated `done` after a lost reply finds the task in review if review is enabled.
            let same = status == other || (matches!(second, Finish::Done) && status == TaskStatus::Review);
            if same {
                continue;
            }
            let f = fresh();
            let ann = claimed(&f);
            f.finish(&ann, "A", first).unwrap();
            assert_eq!(refused(f.finish(&ann, "A", second)), ErrorCode::LeaseLost, "{first:?}, {second:?}");
            assert_eq!(f.status("A"), status);
        }
    }
}

pub(super) fn a_repeated_finish_is_refused_after_a_takeover(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = claimed(&f);
    f.release(&ann, "A").unwrap();
    f.claim(&f.bare("bob"), "A").unwrap();
    assert_eq!(refused(f.release(&ann, "A")), ErrorCode::LeaseLost);
    assert_eq!(f.status("A"), TaskStatus::InProgress);
}

pub(super) fn an_interrupted_attempt_restores_the_status_before_the_claim(fresh: &dyn Fn() -> Fixture) {
    for end in ["release", "expiry", "force", "death"] {
        let f = fresh();
        f.add_task("A");
        let ann = f.worker("ann", 7);
        claim_for_review(&f, &ann);
        match end {
            "release" => drop(f.release(&ann, "A").unwrap()),
            "force" => drop(f.force(&f.lease("A").unwrap()).unwrap()),
            "expiry" => f.clock.advance(TTL),
            _ => f.world.kill(7),
        }
        assert!(!f.task("A").ready, "{end}: a task in review is not ready");
        assert!(f.next(&f.bare("bob")).is_none(), "{end}");
        f.cleanup();
        assert_eq!(f.status("A"), TaskStatus::Review, "{end}");
    }
}

/// The rows that a reviewer's claim writes.
fn claim_for_review(f: &Fixture, reviewer: &Caller) {
    use tenure_core::event::{EventKind, NewEvent};
    f.override_status(reviewer, "A", TaskStatus::Review, false).unwrap();
    let id = f.id("A");
    let lease = tenure_core::store::NewLease {
        id: f.ids.lease(),
        key: f.ids.lease_key(),
        resource: Resource::task(&id),
        holder: reviewer.holder.clone(),
        process: reviewer.process.clone(),
        doorbell: None,
        ttl: TTL,
        expires_at: tenure_core::Clock::now(&*f.clock).after(TTL),
        claimed_from: Some(TaskStatus::Review),
        messages_through: 0,
    };
    f.write(|tx| {
        tx.grant(&lease)?;
        let event = NewEvent::new(EventKind::TaskStatus, "reviewer").task(&id);
        tx.set_status(&id, TaskStatus::InProgress, event.status(TaskStatus::Review, TaskStatus::InProgress))
    })
    .unwrap();
}
