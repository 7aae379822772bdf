//! Outcomes that were kept outside the store while it did not answer (F6).

use tenure_core::id::Fence;
use tenure_core::job::{ItemState, JobState};
use tenure_core::kernel::{self, Terms};
use tenure_core::lease::{Attempt, AttemptState, EndReason};
use tenure_core::outcome::{AttemptResult, KeptOutcome, Nonce, Outcomes};
use tenure_core::task::TaskStatus;
use tenure_core::{Context, ErrorCode};

use super::jobs::{definition, item, job, next, start, take};
use crate::fixture::{Fixture, TESTER, TTL, refused};
use crate::world::FakeOutcomes;

/// Ann, process 7, has begun an attempt at A, which led to `result` while the store did not answer.
fn kept(f: &Fixture, result: AttemptResult) -> (Attempt, FakeOutcomes) {
    f.add_task("A");
    let ann = f.worker("ann", 7);
    let lease = f.claim(&ann, "A").unwrap().lease;
    let nonce = Nonce::new(&f.ids);
    let owner = ann.process.unwrap();
    let begin = |tx: &mut dyn tenure_core::store::Tx| {
        kernel::begin_attempt(tx, &f.context(), &lease, &owner, None, None, Some(&nonce))
    };
    let attempt = f.write(begin).unwrap();
    let (fence, exit_code) = (attempt.fence, Some(3));
    (attempt.clone(), FakeOutcomes::of(KeptOutcome { attempt: attempt.id, fence, nonce, exit_code, result }))
}

fn why() -> String {
    "exited with 3".to_owned()
}

fn context<'a>(f: &'a Fixture, outcomes: &'a FakeOutcomes) -> Context<'a> {
    Context { outcomes, ..f.context() }
}

pub(super) fn a_kept_outcome_is_applied_by_whatever_closes_the_lease(fresh: &dyn Fn() -> Fixture) {
    type Closing = fn(&Fixture, &Context<'_>);
    let closings: [(&str, Closing); 5] = [
        ("a clean-up", |f, ctx| {
            f.write(|tx| kernel::close_all_lapsed(tx, ctx, TESTER)).unwrap();
        }),
        ("reconcile", |f, ctx| {
            f.write(|tx| kernel::reconcile(tx, ctx, TESTER)).unwrap();
        }),
        ("a claim of it", |f, ctx| {
            let (bob, id) = (f.bare("bob"), f.id("A"));
            let verdict = f.write(|tx| kernel::acquire_task(tx, ctx, &bob, &id, &Terms::new(TTL))).unwrap();
            assert!(matches!(verdict, kernel::Verdict::CannotStart { .. }), "{verdict:?}");
        }),
        ("a claim of the next", |f, ctx| {
            let bob = f.bare("bob");
            let none = f.write(|tx| kernel::acquire_next(tx, ctx, &bob, None, &Terms::new(TTL))).unwrap();
            assert!(none.is_none());
        }),
        ("a release by force", |f, ctx| {
            let shown = f.lease("A").unwrap();
            f.write(|tx| kernel::evict(tx, ctx, TESTER, &shown)).unwrap();
        }),
    ];
    for dies in [true, false] {
        for (closing, close) in closings {
            let f = fresh();
            let (attempt, outcomes) = kept(&f, AttemptResult::Done);
            if dies {
                f.world.kill(7);
            } else {
                f.clock.advance(TTL);
            }
            close(&f, &context(&f, &outcomes));
            assert_eq!((f.status("A"), f.lease("A")), (TaskStatus::Completed, None), "{closing}");
            let lease = f.history(&attempt.resource).pop().unwrap();
            assert_eq!(lease.ended.map(|(_, reason)| reason), Some(EndReason::Completed), "{closing}");
            let moved = f.events().into_iter().rfind(|e| e.to == Some(TaskStatus::Completed)).unwrap();
            assert_eq!((moved.actor.as_str(), moved.fence), ("ann", Some(attempt.fence)), "{closing}");
            let stored = f.read(|view| view.attempts(&attempt.resource)).pop().unwrap();
            assert_eq!((stored.state, stored.exit_code), (AttemptState::Ending, Some(3)), "{closing}");
        }
    }
}

pub(super) fn each_kept_result_leads_to_where_its_report_would_have(fresh: &dyn Fn() -> Fixture) {
    let results = [
        (AttemptResult::Done, TaskStatus::Completed, 0),
        (AttemptResult::Failed { why: why(), charged: false }, TaskStatus::Failed, 0),
        (AttemptResult::Failed { why: why(), charged: true }, TaskStatus::Failed, 1),
        (AttemptResult::Unreported { why: why() }, TaskStatus::Review, 0),
        (AttemptResult::Broken { why: why() }, TaskStatus::Pending, 1),
        (AttemptResult::Returned { why: why() }, TaskStatus::Pending, 0),
    ];
    for (result, status, charged) in results {
        let f = fresh();
        let (_, outcomes) = kept(&f, result.clone());
        // Without the kept outcome, a death in this boot would be charged.
        f.world.kill(7);
        f.write(|tx| kernel::close_all_lapsed(tx, &context(&f, &outcomes), TESTER)).unwrap();
        assert_eq!((f.status("A"), f.task("A").attempts), (status, charged), "{result:?}");
    }
}

pub(super) fn an_outcome_that_the_supervisor_did_not_keep_is_ignored(fresh: &dyn Fn() -> Fixture) {
    type Forgery = fn(&Fixture, &mut KeptOutcome);
    let forgeries: [Forgery; 2] = [
        |f, kept| kept.nonce = Nonce::new(&f.ids),
        |f, kept| kept.attempt = tenure_core::id::Ids::attempt(&f.ids),
    ];
    for forge in forgeries {
        let f = fresh();
        let (attempt, outcomes) = kept(&f, AttemptResult::Done);
        let mut forged = outcomes.kept(attempt.fence).unwrap();
        forge(&f, &mut forged);
        let outcomes = FakeOutcomes::of(forged);
        f.world.kill(7);
        f.write(|tx| kernel::close_all_lapsed(tx, &context(&f, &outcomes), TESTER)).unwrap();
        assert_eq!((f.status("A"), f.task("A").attempts), (TaskStatus::Pending, 1));
    }
    // An attempt without a hash accepts none.
    let f = fresh();
    f.add_task("A");
    let ann = f.worker("ann", 7);
    let attempt = f.begin_attempt(&f.claim(&ann, "A").unwrap().lease, &ann);
    let (nonce, fence) = (Nonce::new(&f.ids), attempt.fence);
    let result = AttemptResult::Done;
    let outcomes =
        FakeOutcomes::of(KeptOutcome { attempt: attempt.id, fence, nonce, exit_code: None, result });
    f.world.kill(7);
    f.write(|tx| kernel::close_all_lapsed(tx, &context(&f, &outcomes), TESTER)).unwrap();
    assert_eq!(f.status("A"), TaskStatus::Pending);
}

pub(super) fn a_live_lease_is_not_ended_by_a_kept_outcome(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (_, outcomes) = kept(&f, AttemptResult::Done);
    let ctx = context(&f, &outcomes);
    f.write(|tx| kernel::reconcile(tx, &ctx, TESTER)).unwrap();
    assert_eq!(f.status("A"), TaskStatus::InProgress);
    let (bob, id) = (f.bare("bob"), f.id("A"));
    let claimed = f.write(|tx| kernel::acquire_task(tx, &ctx, &bob, &id, &Terms::new(TTL))?.granted());
    assert_eq!(refused(claimed), ErrorCode::TaskLocked);
}

pub(super) fn a_supervisor_that_reports_after_its_outcome_was_applied_changes_nothing(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let (_, outcomes) = kept(&f, AttemptResult::Done);
    f.clock.advance(TTL);
    f.write(|tx| kernel::close_all_lapsed(tx, &context(&f, &outcomes), TESTER)).unwrap();
    let events = f.events().len();
    let (ann, name) = (f.worker("ann", 7), f.name("A"));
    let again = f
        .write(|tx| kernel::conclude_attempt(tx, &f.context(), &ann, &name, &AttemptResult::Done, false))
        .unwrap();
    assert!(!again.changed);
    assert_eq!((again.task.status, f.events().len()), (TaskStatus::Completed, events));
}

pub(super) fn a_kept_success_of_an_item_is_not_run_again(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(2));
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let grant = take(&f, &ann, &made);
    let nonce = Nonce::new(&f.ids);
    let owner = ann.process.clone().unwrap();
    let attempt = f
        .write(|tx| kernel::begin_attempt(tx, &f.context(), &grant.lease, &owner, None, None, Some(&nonce)))
        .unwrap();
    let fence: Fence = attempt.fence;
    let kept =
        KeptOutcome { attempt: attempt.id, fence, nonce, exit_code: Some(0), result: AttemptResult::Done };
    let outcomes = FakeOutcomes::of(kept);
    let ctx = context(&f, &outcomes);
    f.world.kill(7);
    let take_next = || f.write(|tx| kernel::take_item(tx, &ctx, &bob, &made.id, &Terms::new(TTL))).unwrap();
    let kernel::NextItem::Granted(second) = take_next() else { panic!("item 2 is pending") };
    assert_eq!(second.item.number, 2);
    // Nothing is pending now, so the worker closes the lapsed lease of the first.
    assert!(matches!(take_next(), kernel::NextItem::Busy));
    assert_eq!(item(&f, &made, 1).state, ItemState::Succeeded);
    assert_eq!(job(&f, &made.id).counts.succeeded, 1);
    f.write(|tx| kernel::finish_item(tx, &f.context(), &second.lease, kernel::ItemOutcome::Succeeded))
        .unwrap();
    assert!(matches!(next(&f, &bob, &made), kernel::NextItem::Over(JobState::Completed)));
}
