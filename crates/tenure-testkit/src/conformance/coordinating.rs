//! Coordination of a job: one coordinator at a time, resumed after a death, cancelled; a coordinator that lost the
//! job writes nothing.

use tenure_core::ErrorCode;
use tenure_core::holder::Caller;
use tenure_core::job::{Job, JobState, OnFailure};
use tenure_core::kernel::{self, ItemOutcome, NextItem, Terms};
use tenure_core::lease::EndReason;
use tenure_core::rules::{self, TakeUp, TakenUp};

use super::jobs::{BROKEN, definition, finish, job, next, start, stopping, succeed, take};
use crate::fixture::{Fixture, TESTER, TTL, refused};

fn take_up(f: &Fixture, caller: &Caller, job: &Job, how: TakeUp) -> TakenUp {
    f.write(|tx| rules::take_up_job(tx, &f.context(), caller, &job.id, &Terms::new(TTL), how)).unwrap()
}

pub(super) fn a_job_has_one_live_coordinator(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, _) = start(&f, &definition(1));
    let (bob, cid) = (f.worker("bob", 8), f.worker("cid", 9));
    let TakenUp::Refused(locked) = take_up(&f, &bob, &made, TakeUp::default()) else {
        panic!("ann coordinates it");
    };
    let message = tenure_core::Error::Locked(locked).to_string();
    assert!(
        message
            .starts_with(&format!("Resume already in progress for job {}\nLock held by: PID 7 on ", made.id))
    );
    assert!(
        message.contains(" (acquired ")
            && message.ends_with("Please wait for the other process to complete.")
    );
    let at_work = || f.read(|view| rules::jobs_at_work(view, &f.context()));
    assert!(at_work().contains(&made.id));
    f.world.kill(7);
    assert!(at_work().is_empty());
    assert!(matches!(take_up(&f, &bob, &made, TakeUp::default()), TakenUp::Yours(..)));
    assert!(matches!(take_up(&f, &cid, &made, TakeUp::default()), TakenUp::Refused(_)));
}

pub(super) fn force_takes_a_job_from_an_unknown_holder_and_never_from_a_live_one(
    fresh: &dyn Fn() -> Fixture,
) {
    let f = fresh();
    let (made, _) = start(&f, &definition(1));
    let force =
        || f.write(|tx| kernel::evict_unless_alive(tx, &f.context(), &made.resource(), TESTER)).unwrap();
    let bob = f.worker("bob", 8);
    force();
    assert!(matches!(take_up(&f, &bob, &made, TakeUp::default()), TakenUp::Refused(_)), "ann lives");
    f.world.kill(7);
    let remote = f.bare("cid").with_process(f.world.remote_process(9));
    assert!(matches!(take_up(&f, &remote, &made, TakeUp::default()), TakenUp::Yours(..)));
    assert!(
        matches!(take_up(&f, &bob, &made, TakeUp::default()), TakenUp::Refused(_)),
        "its liveness is unknown"
    );
    force();
    assert!(matches!(take_up(&f, &bob, &made, TakeUp::default()), TakenUp::Yours(..)));
}

pub(super) fn a_finished_job_is_not_resumed_unless_failed_items_are_retried(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, lease) = start(&f, &stopping(2, OnFailure::Dlq));
    let ann = f.worker("ann", 7);
    let (first, second) = (take(&f, &ann, &made), take(&f, &ann, &made));
    succeed(&f, &first);
    assert_eq!(finish(&f, &second, BROKEN).unwrap().job.state, JobState::Failed);
    f.write(|tx| kernel::release_resource(tx, &f.context(), &lease, EndReason::Released)).unwrap();
    let bob = f.worker("bob", 8);
    let TakenUp::Finished(over) = take_up(&f, &bob, &made, TakeUp::default()) else {
        panic!("it is finished")
    };
    assert_eq!(over.state, JobState::Failed);
    assert_eq!(f.read(|view| view.open_lease(&made.resource())), None, "no lease stays open");
    let again = TakeUp { retry_failed: true };
    let TakenUp::Yours(open, lease) = take_up(&f, &bob, &made, again) else { panic!("one item is retried") };
    assert_eq!((open.state, open.counts.pending, open.counts.succeeded), (JobState::Open, 1, 1));
    let retried = take(&f, &bob, &made);
    assert_eq!((retried.item.number, retried.item.failures), (2, 0));
    assert_eq!(succeed(&f, &retried).job.state, JobState::Completed);
    f.write(|tx| kernel::release_resource(tx, &f.context(), &lease, EndReason::Released)).unwrap();
    assert!(matches!(take_up(&f, &bob, &made, again), TakenUp::Finished(_)));
}

pub(super) fn a_stopped_job_resumes_with_its_remaining_items(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, lease) = start(&f, &stopping(2, OnFailure::Stop));
    let ann = f.worker("ann", 7);
    let grant = take(&f, &ann, &made);
    assert_eq!(finish(&f, &grant, BROKEN).unwrap().job.state, JobState::Failed);
    f.write(|tx| kernel::release_resource(tx, &f.context(), &lease, EndReason::Released)).unwrap();
    let TakenUp::Yours(open, _) = take_up(&f, &ann, &made, TakeUp::default()) else { panic!("one is left") };
    assert_eq!((open.counts.pending, open.counts.failed), (1, 1), "the dead-letter list is kept");
}

pub(super) fn a_cancelled_job_takes_its_items_from_the_workers(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, lease) = start(&f, &definition(2));
    let bob = f.worker("bob", 8);
    let grant = take(&f, &bob, &made);
    let cancelled = f.write(|tx| rules::cancel_job(tx, &f.context(), &lease)).unwrap();
    assert_eq!((cancelled.state, cancelled.counts.pending), (JobState::Cancelled, 2));
    assert_eq!(refused(finish(&f, &grant, ItemOutcome::Succeeded)), ErrorCode::LeaseLost);
    assert!(matches!(next(&f, &bob, &made), NextItem::Over(JobState::Cancelled)));
    let again = TakeUp { retry_failed: true };
    assert!(matches!(take_up(&f, &bob, &made, again), TakenUp::Finished(_)));
}

pub(super) fn a_coordinator_that_lost_the_job_writes_nothing(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let (made, lease) = start(&f, &definition(1));
    f.clock.advance(TTL);
    assert!(matches!(take_up(&f, &f.worker("bob", 8), &made, TakeUp::default()), TakenUp::Yours(..)));
    let more = f.write(|tx| rules::load_items(tx, &f.context(), &lease, 2, &["2".to_owned()]));
    assert_eq!(refused(more), ErrorCode::LeaseLost);
    let changed = f.write(|tx| rules::change_definition(tx, &f.context(), &lease, &definition(9), &[]));
    assert_eq!(refused(changed), ErrorCode::LeaseLost);
    assert_eq!(refused(f.write(|tx| rules::cancel_job(tx, &f.context(), &lease))), ErrorCode::LeaseLost);
    assert_eq!(job(&f, &made.id).definition, definition(1));
}
